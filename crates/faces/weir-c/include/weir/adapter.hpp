// weir/adapter.hpp: what the adapters of other systems share. A session is a link that any thread may send to. It takes orders in a
// thread of its own, and ends a program whose functions hang or fail, by name. Manual: docs/adapters.md.
#ifndef WEIR_ADAPTER_HPP
#define WEIR_ADAPTER_HPP

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../weir.hpp"

namespace weir::adapter {

using Clock = std::chrono::steady_clock;

/// The function of the program's author that the main thread is in, as long as this lives: what hangs is named. The names live longer.
class Inside {
public:
    Inside(const std::string &whose, const char *function) : whose_(whose_now_), function_(function_now_) {
        whose_now_ = &whose;
        function_now_ = function;
    }

    ~Inside() {
        whose_now_ = whose_;
        function_now_ = function_;
    }

    Inside(const Inside &) = delete;
    Inside &operator=(const Inside &) = delete;

    /// What hangs, as the source of this name says it.
    static std::string now(const std::string &name) {
        const std::string *const whose = whose_now_;
        const char *const function = function_now_;
        if (whose == nullptr || function == nullptr) {
            return "the program";
        }
        return (*whose == name ? "" : *whose + ": ") + function;
    }

private:
    static inline std::atomic<const std::string *> whose_now_{nullptr};
    static inline std::atomic<const char *> function_now_{nullptr};

    const std::string *whose_;
    const char *function_;
};

/// The first interrupt asks the program to end in order, the second one ends it.
class Interrupt {
public:
    static void expect() {
        struct sigaction action = {};
        action.sa_handler = [](int signal) { came_ = signal; };
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        sigaction(SIGINT, &action, nullptr);
        sigaction(SIGTERM, &action, nullptr);
    }

    /// The signal, or 0.
    static int came() { return came_; }

private:
    static inline volatile std::sig_atomic_t came_ = 0;
};

/// What a partition wants: WEIR_START, WEIR_STOP, WEIR_END, or WEIR_ERROR, where the link is broken.
struct Order {
    weir_order kind = WEIR_NOTHING;
    std::uint32_t run = 0;
};

class Session {
public:
    /// Connects; throws Error.
    Session(const std::string &at, const Settings &settings)
        : name_(settings.name), deadline_(settings.deadline.count() > 0 ? settings.deadline : std::chrono::seconds(5)), link_(at, settings) {
        keeper_ = std::thread([this] { keep(); });
    }

    ~Session() {
        is_over_ = true;
        keeper_.join();
    }

    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    const std::string &name() const { return name_; }

    /// The next order, or WEIR_NOTHING after this time. Of what it asks for, say done() when it is done.
    Order next_order(std::chrono::milliseconds at_most) {
        std::unique_lock<std::mutex> lock(mutex_);
        came_.wait_for(lock, at_most, [this] { return !orders_.empty(); });
        if (orders_.empty()) {
            return {};
        }
        const Order order = orders_.front();
        orders_.pop_front();
        return order;
    }

    void done() {
        const std::lock_guard<std::mutex> lock(mutex_);
        waits_ -= waits_ > 0 ? 1 : 0;
        since_ = Clock::now();
    }

    /// Sends a fragment of `len` bytes that `fill` writes to the address that it gets. Waits while the partition is busy. False if there is no
    /// run, or if it stops and stays busy: the fragment is dropped, and counted. Throws Error.
    template <typename Fill> bool send(const weir_head &head, std::size_t len, Fill fill) {
        for (;; std::this_thread::sleep_for(BUSY_PAUSE)) {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (!is_running_) {
                dropped_++;
                return false;
            }
            std::uint8_t *const slot = reserve(len);
            if (slot != nullptr) {
                fill(slot);
                link_.commit(head, len);
                flush_now_and_then();
                return true;
            }
            take_orders();
            if (is_stopping_ && Clock::now() - stopping_since_ > GIVE_UP_AFTER) {
                has_given_up_ = true;
                dropped_++;
                return false;
            }
            if (!is_stopping_) {
                // A busy partition is no fault of the program.
                since_ = Clock::now();
            }
        }
    }

    /// Whether what is sent before end() is dropped, since the partition stops and stays busy, or is gone.
    bool has_given_up() const { return has_given_up_ || has_ended_; }

    /// Says that all fragments of the run are sent, and how many were dropped since the last time.
    std::uint64_t end() {
        const std::lock_guard<std::mutex> lock(mutex_);
        is_stopping_ = false;
        has_given_up_ = false;
        if (std::exchange(is_running_, false)) {
            try {
                link_.end();
            } catch (const Error &error) {
                lose(error);
            }
        }
        return std::exchange(dropped_, 0);
    }

    /// Tells run control how the source is; at most once per second.
    void say(const std::string &text) {
        const std::lock_guard<std::mutex> lock(mutex_);
        to_say_ = text;
    }

    /// Why the link broke; empty if it did not.
    std::string why() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return why_;
    }

    /// A function of the author has failed: the source ends, and run control is told. Other threads may still run.
    [[noreturn]] void fail(const std::string &text) {
        std::fprintf(stderr, "weir: source %s: %s\n", name_.c_str(), text.c_str());
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            report(text);
        }
        std::fflush(nullptr);
        std::_Exit(EXIT_FAILURE);
    }

private:
    static constexpr std::chrono::milliseconds LOOK{5};
    static constexpr std::chrono::milliseconds FLUSH_EVERY{1};
    static constexpr std::chrono::seconds SAY_EVERY{1};
    static constexpr std::chrono::microseconds BUSY_PAUSE{50};
    /// The partition waits for a second, and what it has no room for by then belongs to no event.
    static constexpr std::chrono::milliseconds GIVE_UP_AFTER{300};
    static constexpr std::size_t TEXT_BYTES_MAX = 4096;
    /// EX_SOFTWARE, as of the library's own watch.
    static constexpr int EXIT_BLOCKED = 70;

    void keep() {
        while (!is_over_) {
            pollfd orders = {link_.orders(), POLLIN, 0};
            // The descriptor of a link that has ended stays readable.
            ::poll(&orders, has_ended_ ? 0 : 1, static_cast<int>(LOOK.count()));
            const std::lock_guard<std::mutex> lock(mutex_);
            take_orders();
            say_what_is_to_say();
            if (waits_ > 0 && Clock::now() - since_ > deadline_) {
                leave_hanging();
            }
        }
    }

    void take_orders() {
        if (Interrupt::came() != 0 && !std::exchange(is_interrupted_, true)) {
            give({WEIR_END, 0});
        }
        try {
            while (!has_ended_) {
                Order order;
                order.kind = link_.wait(std::chrono::milliseconds(0), order.run);
                if (order.kind == WEIR_NOTHING) {
                    return;
                }
                is_running_ = order.kind == WEIR_START || (is_running_ && order.kind == WEIR_STOP);
                has_ended_ = order.kind == WEIR_END;
                if (order.kind == WEIR_STOP) {
                    is_stopping_ = true;
                    stopping_since_ = Clock::now();
                }
                give(order);
            }
        } catch (const Error &error) {
            lose(error);
        }
    }

    void give(Order order) {
        if (waits_++ == 0) {
            since_ = Clock::now();
        }
        orders_.push_back(order);
        came_.notify_all();
    }

    void lose(const Error &error) {
        is_running_ = false;
        if (!has_ended_.exchange(true)) {
            // Where the end of a link is noticed first is chance.
            why_ = error.code() == WEIR_CLOSED ? "" : error.what();
            give({error.code() == WEIR_CLOSED ? WEIR_END : WEIR_ERROR, 0});
        }
    }

    std::uint8_t *reserve(std::size_t len) {
        try {
            return link_.reserve(len);
        } catch (const Error &error) {
            if (error.code() == WEIR_TOO_LONG) {
                throw;
            }
            lose(error);
            return nullptr;
        }
    }

    /// Rare fragments go out at once, many of them together.
    void flush_now_and_then() {
        const auto now = Clock::now();
        if (now - flushed_ > FLUSH_EVERY) {
            link_.flush();
            flushed_ = now;
        }
    }

    void say_what_is_to_say() {
        const auto now = Clock::now();
        if (to_say_.empty() || to_say_ == said_ || now - said_at_ < SAY_EVERY) {
            return;
        }
        said_ = to_say_;
        said_at_ = now;
        report(said_);
    }

    void report(const std::string &text) {
        if (has_ended_) {
            return;
        }
        try {
            link_.report(text.substr(0, TEXT_BYTES_MAX));
            link_.flush();
        } catch (const Error &error) {
            lose(error);
        }
    }

    [[noreturn]] void leave_hanging() {
        const std::string text = Inside::now(name_) + " has not returned while the partition waited for " +
                                 std::to_string(deadline_.count()) + " ms: wait for the device with a time-out, or give --deadline";
        std::fprintf(stderr, "weir: source %s: %s\n", name_.c_str(), text.c_str());
        report(text);
        ::_exit(EXIT_BLOCKED);
    }

    const std::string name_;
    const std::chrono::milliseconds deadline_;
    std::mutex mutex_;
    std::condition_variable came_;
    Link link_;
    std::deque<Order> orders_;
    /// Orders that are not done, and since when the first of them waits or the last one was done.
    unsigned waits_ = 0;
    Clock::time_point since_;
    bool is_running_ = false;
    bool is_stopping_ = false;
    Clock::time_point stopping_since_;
    bool is_interrupted_ = false;
    std::atomic<bool> has_given_up_{false};
    std::atomic<bool> has_ended_{false};
    std::atomic<bool> is_over_{false};
    std::uint64_t dropped_ = 0;
    std::string why_;
    std::string to_say_;
    std::string said_;
    Clock::time_point said_at_;
    Clock::time_point flushed_;
    std::thread keeper_;
};

/// Calls a function of the author; what it throws ends the source. Without a session yet, run control is not told.
template <typename Call> void guarded(Session *session, const std::string &name, const char *function, Call call) {
    std::string thrown = "threw what is no std::exception";
    try {
        return call();
    } catch (const std::exception &error) {
        thrown = error.what();
    } catch (...) {
    }
    const std::string text = std::string(function) + ": " + thrown;
    if (session != nullptr) {
        session->fail(session->name() == name ? text : name + ": " + text);
    }
    std::fprintf(stderr, "weir: source %s: %s\n", name.c_str(), text.c_str());
    std::exit(EXIT_FAILURE);
}

/// The arguments of a command line, one after the other.
class Arguments {
public:
    Arguments(int argc, char **argv) : rest_(argv + 1, argv + argc) {}
    explicit Arguments(const std::vector<std::string> &arguments) : rest_(arguments.begin(), arguments.end()) {}

    bool next() {
        if (rest_.empty()) {
            return false;
        }
        option_ = rest_.front();
        rest_.pop_front();
        return true;
    }

    const std::string &option() const { return option_; }

    /// What stands behind the option. Throws std::invalid_argument.
    std::string value() {
        if (rest_.empty()) {
            throw std::invalid_argument(option_ + ": expected a value behind it");
        }
        std::string value = rest_.front();
        rest_.pop_front();
        return value;
    }

    /// NAME=VALUE behind the option.
    std::pair<std::string, std::string> assignment() {
        const std::string text = value();
        const auto equals = text.find('=');
        if (equals == std::string::npos || equals == 0) {
            throw std::invalid_argument(option_ + " " + text + ": expected NAME=VALUE");
        }
        return {text.substr(0, equals), text.substr(equals + 1)};
    }

    std::chrono::milliseconds seconds() {
        const std::string text = value();
        char *end = nullptr;
        const double seconds = std::strtod(text.c_str(), &end);
        if (end == text.c_str() || *end != '\0' || !(seconds >= 0.001 && seconds <= 1e6)) {
            throw std::invalid_argument(option_ + " " + text + ": expected seconds, from 0.001 to 1000000");
        }
        return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
    }

    /// Whether this is an option of every adapter.
    bool takes(Settings &settings) {
        if (option_ == "--key-file") {
            settings.key_file = value();
        } else if (option_ == "--deadline") {
            settings.deadline = seconds();
        } else if (option_ == "--patience") {
            settings.patience = seconds();
        } else {
            return false;
        }
        return true;
    }

    [[noreturn]] void refuse() const { throw std::invalid_argument(option_ + ": no such option; --help lists them"); }

    const std::deque<std::string> &rest() const { return rest_; }

    static constexpr const char *COMMON_USAGE = "  --key-file FILE   key of the partition; TCP needs one\n"
                                                "  --deadline S      how long the partition may wait for a function, in seconds; 5\n"
                                                "  --patience S      how long to wait for the partition, in seconds; 60\n";

private:
    std::deque<std::string> rest_;
    std::string option_;
};

}  // namespace weir::adapter

#endif
