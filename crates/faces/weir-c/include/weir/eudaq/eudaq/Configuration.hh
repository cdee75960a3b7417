// An adapter of Weir: it declares names of EUDAQ's public interface, and holds no code of EUDAQ. See docs/adapters.md.
#ifndef WEIR_EUDAQ_CONFIGURATION_HH
#define WEIR_EUDAQ_CONFIGURATION_HH

#include <iostream>
#include <istream>
#include <map>
#include <memory>
#include <ostream>
#include <string>

#include "eudaq/Utils.hh"

namespace eudaq {

/// Sections of names with values: `[section]`, `name = value`, comments behind `#`, values with blanks in quotes.
class Configuration {
public:
    explicit Configuration(const std::string &text = "", const std::string &section = "") {
        std::istringstream stream(text);
        Load(stream, section);
    }

    Configuration(std::istream &text, const std::string &section) { Load(text, section); }

    /// Reads sections, then selects one. Throws Exception with the line that is none of these.
    void Load(std::istream &text, const std::string &section) {
        sections_.clear();
        std::string line, into;
        for (unsigned number = 1; std::getline(text, line); number++) {
            line = stripped(without_comment(line));
            const auto equals = line.find('=');
            if (line.empty()) {
                continue;
            }
            if (line.front() == '[' && line.back() == ']') {
                into = stripped(line.substr(1, line.size() - 2));
                sections_[into];
            } else if (equals != std::string::npos && equals > 0) {
                sections_[into][stripped(line.substr(0, equals))] = unquoted(stripped(line.substr(equals + 1)));
            } else {
                EUDAQ_THROW("line " + std::to_string(number) + ": \"" + line + "\": expected [section] or name = value");
            }
        }
        section_ = section;
    }

    void Save(std::ostream &file) const {
        for (const auto &[name, values] : sections_) {
            if (!name.empty()) {
                file << '[' << name << "]\n";
            }
            print(file, values);
            file << '\n';
        }
    }

    bool HasSection(const std::string &section) const { return sections_.count(section) != 0; }

    /// Selects a section, if there is one of this name.
    bool SetSection(const std::string &section) const {
        const bool has = HasSection(section);
        if (has) {
            section_ = section;
        }
        return has;
    }

    std::string Name() const { return section_; }

    bool Has(const std::string &name) const { return find(name) != nullptr; }

    std::string Get(const std::string &name, const std::string &absent) const {
        const std::string *const found = find(name);
        return found == nullptr ? absent : *found;
    }

    std::string Get(const std::string &name, const char *absent) const { return Get(name, std::string(absent)); }

    /// A value of the type of the one to take if there is none. Throws Exception.
    template <typename T> T Get(const std::string &name, T absent) const {
        const std::string *const found = find(name);
        try {
            return found == nullptr ? absent : from_string<T>(*found, absent);
        } catch (const Exception &error) {
            throw Exception(name + " = " + error.what());
        }
    }

    /// The value of a name that has to be there. Throws Exception.
    std::string operator[](const std::string &name) const {
        const std::string *const found = find(name);
        if (found == nullptr) {
            EUDAQ_THROW(name + " is not in section [" + section_ + "]");
        }
        return *found;
    }

    template <typename T> void Set(const std::string &name, const T &value) { sections_[section_][name] = to_string(value); }

    void Print(std::ostream &to, std::size_t indent = 0) const {
        const auto found = sections_.find(section_);
        if (found != sections_.end()) {
            print(to, found->second, std::string(indent, ' '));
        }
    }

    void Print() const { Print(std::cout); }

private:
    using Values = std::map<std::string, std::string>;

    const std::string *find(const std::string &name) const {
        const auto section = sections_.find(section_);
        if (section == sections_.end()) {
            return nullptr;
        }
        const auto value = section->second.find(name);
        return value == section->second.end() ? nullptr : &value->second;
    }

    static void print(std::ostream &to, const Values &values, const std::string &indent = "") {
        for (const auto &[name, value] : values) {
            const bool has_blanks = value.find_first_of(" \t#") != std::string::npos;
            const char *const quote = !has_blanks ? "" : value.find('"') == std::string::npos ? "\"" : "'";
            to << indent << name << " = " << quote << value << quote << '\n';
        }
    }

    static std::string stripped(const std::string &text) {
        const auto begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
        return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
    }

    static std::string without_comment(const std::string &line) {
        char quote = '\0';
        for (std::size_t at = 0; at < line.size(); at++) {
            const char letter = line[at];
            if (quote == '\0' && letter == '#') {
                return line.substr(0, at);
            }
            if (letter == quote) {
                quote = '\0';
            } else if (quote == '\0' && (letter == '"' || letter == '\'')) {
                quote = letter;
            }
        }
        return line;
    }

    static std::string unquoted(const std::string &text) {
        const bool is_quoted = text.size() >= 2 && text.front() == text.back() && (text.front() == '"' || text.front() == '\'');
        return is_quoted ? text.substr(1, text.size() - 2) : text;
    }

    std::map<std::string, Values> sections_;
    mutable std::string section_;
};

using ConfigurationUP = std::unique_ptr<Configuration>;
using ConfigurationSP = std::shared_ptr<Configuration>;
using ConfigurationSPC = std::shared_ptr<const Configuration>;

}  // namespace eudaq

#endif
