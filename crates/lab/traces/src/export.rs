//! JSON in the format of trace events, which Perfetto and Chrome show.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use serde_json::json;
use stamps::spans::Span;

use crate::error::TracesError;
use crate::merged::Merged;
use crate::{Done, ExportArgs};

pub(crate) fn export(args: &ExportArgs) -> Done {
    let merged = Merged::read(&args.files)?;
    let failed = |cause| TracesError::Output { path: args.output.clone(), cause };
    let mut out = BufWriter::new(File::create(&args.output).map_err(failed)?);
    let count = write(&merged, &mut out).and_then(|count| out.flush().map(|()| count)).map_err(failed)?;
    Ok(format!("{}{count} trace events in {}\n", merged.remarks(), args.output.display()))
}

fn write(merged: &Merged, out: &mut impl Write) -> io::Result<usize> {
    let mut count = 0;
    let mut put = |event: serde_json::Value| {
        write!(out, "{}\n{event}", if count == 0 { "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" } else { "," })?;
        count += 1;
        Ok::<_, io::Error>(())
    };
    let names: BTreeMap<u32, &str> = merged.threads.iter().map(|thread| (thread.pid, &*thread.process)).collect();
    for (pid, name) in names {
        put(json!({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}))?;
    }
    for (tid, thread) in merged.threads.iter().enumerate() {
        let args = json!({"name": thread.thread});
        put(json!({"ph": "M", "name": "thread_name", "pid": thread.pid, "tid": tid, "args": args}))?;
    }
    for (tid, span) in merged.spans() {
        put(json!({
            "ph": "X", "name": merged.name(span.section), "cat": "section", "pid": merged.threads[tid].pid, "tid": tid,
            "ts": us(span.from_ns - merged.begin_ns), "dur": us(span.to_ns - span.from_ns), "args": words(merged, span),
        }))?;
    }
    for (id, arrow) in merged.arrows().into_iter().enumerate() {
        let name = merged.name(arrow.sent.section);
        let end = |ph: &str, tid: usize, at_ns: u64| {
            let pid = merged.threads[tid].pid;
            let mut event = json!({"ph": ph, "name": name, "cat": "message", "id": id, "pid": pid, "tid": tid,
                "ts": us(at_ns - merged.begin_ns)});
            if ph == "f" {
                event["bp"] = "e".into();
            }
            event
        };
        put(end("s", arrow.from_thread, arrow.sent.at_ns))?;
        put(end("f", arrow.to_thread, arrow.handled_ns))?;
    }
    writeln!(out, "\n]}}")?;
    Ok(count)
}

fn words(merged: &Merged, span: &Span) -> serde_json::Value {
    let mut words = serde_json::Map::new();
    merged.place(span.place).map(|name| words.insert("application".into(), name.into()));
    merged.place(span.peer).map(|name| words.insert("from".into(), name.into()));
    if !span.events.is_empty() {
        words.insert("events".into(), span.events.clone().into());
    }
    if !span.is_whole {
        words.insert("end".into(), "not seen".into());
    }
    words.into()
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}
