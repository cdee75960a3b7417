//! `weir.h` says what the library has: the compiler compares it with declarations made of the Rust ones.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use testkit::TempDir;
use weir_c::boundary::{self, Head, Order, Settings, Source};
use weir_c::handle::Code;

#[test]
fn the_header_declares_the_functions_of_the_library() {
    let declared = declarations();
    let names: BTreeSet<&str> = declared.iter().map(|(name, _)| name.as_str()).collect();
    let header = include_str!("../include/weir.h");
    let in_header: BTreeSet<&str> = header
        .lines()
        .filter(|line| line.ends_with(");") && !line.starts_with([' ', '/', '*']))
        .map(|line| line.split('(').next().unwrap().rsplit([' ', '*']).next().unwrap())
        .collect();
    assert_eq!(in_header, names);
    let mut source = "#include \"weir.h\"\n".to_owned();
    declared.iter().for_each(|(_, declaration)| writeln!(source, "{declaration};").unwrap());
    assert_compiles("c", "-std=c99", &source);
}

#[test]
fn the_header_lays_types_out_as_the_library_does() {
    let mut source = "#include \"weir.h\"\n".to_owned();
    let mut expect = |what: &str, value: usize| writeln!(source, "_Static_assert({what} == {value}, \"\");").unwrap();
    expect("sizeof(weir_head)", size_of::<Head>());
    expect("offsetof(weir_head, begin)", offset_of!(Head, begin));
    expect("offsetof(weir_head, end)", offset_of!(Head, end));
    expect("offsetof(weir_head, trigger_type)", offset_of!(Head, trigger_type));
    expect("offsetof(weir_head, flags)", offset_of!(Head, flags));
    expect("sizeof(weir_settings)", size_of::<Settings>());
    expect("offsetof(weir_settings, key_file)", offset_of!(Settings, key_file));
    expect("offsetof(weir_settings, id)", offset_of!(Settings, id));
    expect("offsetof(weir_settings, patience_ms)", offset_of!(Settings, patience_ms));
    expect("offsetof(weir_settings, deadline_ms)", offset_of!(Settings, deadline_ms));
    expect("sizeof(weir_source)", size_of::<Source>());
    expect("offsetof(weir_source, start)", offset_of!(Source, start));
    expect("offsetof(weir_source, read)", offset_of!(Source, read));
    expect("offsetof(weir_source, stop)", offset_of!(Source, stop));
    expect("offsetof(weir_source, status)", offset_of!(Source, status));
    expect("sizeof(weir_code)", size_of::<Code>());
    expect("sizeof(weir_order)", size_of::<Order>());
    for (name, code) in [
        ("OK", Code::Ok),
        ("BUSY", Code::Busy),
        ("BAD_ARGUMENT", Code::BadArgument),
        ("UNREACHABLE", Code::Unreachable),
        ("REFUSED", Code::Refused),
        ("CLOSED", Code::Closed),
        ("TOO_LONG", Code::TooLong),
        ("SYSTEM", Code::System),
        ("FAILED", Code::Failed),
        ("BLOCKED", Code::Blocked),
    ] {
        expect(&format!("WEIR_{name}"), code as usize);
    }
    for (name, order) in [
        ("NOTHING", Order::Nothing),
        ("START", Order::Start),
        ("STOP", Order::Stop),
        ("END", Order::End),
        ("ERROR", Order::Error),
    ] {
        expect(&format!("WEIR_{name}"), order as usize);
    }
    for (name, reading) in [
        ("NOTHING", boundary::READ_NOTHING),
        ("COMMITTED", boundary::READ_COMMITTED),
        ("IDLE", boundary::READ_IDLE),
        ("END", boundary::READ_END),
        ("FAILED", boundary::READ_FAILED),
    ] {
        expect(&format!("WEIR_READ_{name}"), usize::try_from(reading).unwrap());
    }
    for (name, flag) in [
        ("HAS_NUMBER", boundary::HAS_NUMBER),
        ("HAS_TIME", boundary::HAS_TIME),
        ("CHECKSUM", boundary::CHECKSUM),
        ("TRANSMISSION_ERROR", boundary::TRANSMISSION_ERROR),
        ("CUT", boundary::CUT),
    ] {
        expect(&format!("WEIR_{name}"), usize::try_from(flag).unwrap());
    }
    assert_compiles("c", "-std=c11", &source);
}

#[test]
fn the_headers_are_c_and_cpp() {
    assert_compiles("c", "-std=c99", "#include \"weir.h\"\n");
    assert_compiles("c++", "-std=c++17", "#include \"weir.h\"\n#include \"weir.hpp\"\n");
}

/// The functions in the Rust source, by name, as declarations in C.
fn declarations() -> Vec<(String, String)> {
    let source = include_str!("../src/boundary.rs");
    let functions = source.split("pub unsafe extern \"C\" fn ").skip(1).map(|rest| rest.split(" {").next().unwrap());
    let declared = functions.map(|function| {
        let (name, rest) = function.split_once('(').unwrap();
        let (arguments, result) = rest.rsplit_once(')').unwrap();
        let arguments: Vec<String> = arguments
            .split(',')
            .map(str::trim)
            .filter(|argument| !argument.is_empty())
            .map(|argument| in_c(argument.split_once(": ").unwrap().1))
            .collect();
        let result = result.trim().strip_prefix("-> ").map_or("void".to_owned(), in_c);
        (name.to_owned(), format!("{result} {name}({})", arguments.join(", ")))
    });
    let declared: Vec<_> = declared.collect();
    assert!(declared.len() > 10, "{declared:?}");
    declared
}

fn in_c(rust: &str) -> String {
    if let Some(to) = rust.strip_prefix("*const ") {
        return format!("{} const *", in_c(to));
    }
    if let Some(to) = rust.strip_prefix("*mut ") {
        return format!("{} *", in_c(to));
    }
    match rust {
        "c_char" => "char",
        "c_int" => "int",
        "c_void" => "void",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "Code" => "weir_code",
        "Head" => "weir_head",
        "Link" => "weir_link",
        "Order" => "weir_order",
        "Settings" => "weir_settings",
        "Source" => "weir_source",
        other => panic!("the type {other} at the boundary"),
    }
    .to_owned()
}

fn assert_compiles(language: &str, standard: &str, source: &str) {
    let compiler = if language == "c" { "cc" } else { "c++" };
    if Command::new(compiler).arg("--version").output().is_err() {
        return testkit::skip("header", &format!("{compiler} is not installed"));
    }
    let directory = TempDir::new("header");
    let file = directory.join("test");
    std::fs::write(&file, source).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut command = Command::new(compiler);
    command.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", language, "-I"]);
    let output = command.arg(include).arg(&file).output().unwrap();
    assert!(output.status.success(), "{source}\n{}", String::from_utf8_lossy(&output.stderr));
}
