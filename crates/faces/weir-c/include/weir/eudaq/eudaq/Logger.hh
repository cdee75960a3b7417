// An adapter of Weir: it declares names of EUDAQ's public interface, and holds no code of EUDAQ. See docs/adapters.md.
#ifndef WEIR_EUDAQ_LOGGER_HH
#define WEIR_EUDAQ_LOGGER_HH

#include <atomic>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>

#include "eudaq/Exception.hh"

namespace eudaq {

/// Messages go to the standard error; warnings and worse to run control, too.
class Log {
public:
    enum Level { debug, extra, info, warn, error, user };

    static void say(Level level, const std::string &text) {
        if (level < lowest()) {
            return;
        }
        const std::lock_guard<std::mutex> lock(here().mutex);
        std::cerr << names()[level] << ": " << text << std::endl;
        if (level == warn || level == error) {
            here().to_run_control(std::string(names()[level]) + ": " + text);
        }
    }

    static void set_lowest(const std::string &name) {
        for (int level = debug; level <= user; level++) {
            if (name == names()[level]) {
                lowest() = level;
                return;
            }
        }
        EUDAQ_THROW("\"" + name + "\" is no level of messages: expected DEBUG, EXTRA, INFO, WARN, ERROR or USER");
    }

    static void tell(std::function<void(const std::string &)> run_control) {
        const std::lock_guard<std::mutex> lock(here().mutex);
        here().to_run_control = std::move(run_control);
    }

private:
    static Log &here() {
        static Log log;
        return log;
    }

    static std::atomic<int> &lowest() {
        static std::atomic<int> level{info};
        return level;
    }

    static const char *const *names() {
        static const char *const names[] = {"DEBUG", "EXTRA", "INFO", "WARN", "ERROR", "USER"};
        return names;
    }

    std::mutex mutex;
    std::function<void(const std::string &)> to_run_control = [](const std::string &) {};
};

}  // namespace eudaq

#define EUDAQ_DEBUG(text) ::eudaq::Log::say(::eudaq::Log::debug, text)
#define EUDAQ_EXTRA(text) ::eudaq::Log::say(::eudaq::Log::extra, text)
#define EUDAQ_INFO(text) ::eudaq::Log::say(::eudaq::Log::info, text)
#define EUDAQ_WARN(text) ::eudaq::Log::say(::eudaq::Log::warn, text)
#define EUDAQ_ERROR(text) ::eudaq::Log::say(::eudaq::Log::error, text)
#define EUDAQ_USER(text) ::eudaq::Log::say(::eudaq::Log::user, text)
#define EUDAQ_LOG_LEVEL(name) ::eudaq::Log::set_lowest(name)

#endif
