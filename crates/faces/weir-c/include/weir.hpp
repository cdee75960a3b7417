// weir.hpp: weir.h for C++17. A link that closes itself, errors as exceptions, a source as a class.
#ifndef WEIR_HPP
#define WEIR_HPP

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "weir.h"

namespace weir {

/// A call that failed: code() tells errors apart, what() says it in words.
class Error : public std::runtime_error {
public:
    Error(weir_code code, const char *text) : std::runtime_error(text), code_(code) {}
    weir_code code() const noexcept { return code_; }

private:
    weir_code code_;
};

/// Who a source is; see weir_settings.
struct Settings {
    std::string name;
    std::string key_file;
    std::uint32_t id = 0;
    std::chrono::milliseconds patience{0};
    std::chrono::milliseconds deadline{0};

    /// Reads a command line: sets what its arguments say, and gives the address. Throws Error, for help too. See weir_arguments().
    std::string take(int argc, char *const *argv) {
        weir_settings found = raw();
        found.name = name.empty() ? nullptr : found.name;
        const char *const at = weir_arguments(argc, argv, &found);
        if (at == nullptr) {
            throw Error(weir_error_code(nullptr), weir_error(nullptr));
        }
        name = found.name;
        key_file = found.key_file == nullptr ? "" : found.key_file;
        patience = std::chrono::milliseconds(found.patience_ms);
        deadline = std::chrono::milliseconds(found.deadline_ms);
        return at;
    }

    /// The same for C, valid as long as this.
    weir_settings raw() const {
        return {name.c_str(), key_file.empty() ? nullptr : key_file.c_str(), id, static_cast<std::uint32_t>(patience.count()),
                static_cast<std::uint32_t>(deadline.count())};
    }
};

/// What `--set KEY=VALUE` has said on the command line, or else this.
inline std::string parameter(const std::string &key, const std::string &otherwise = {}) {
    const char *const value = weir_parameter(key.c_str());
    return value == nullptr ? otherwise : value;
}

/// The head of a fragment of this event.
inline weir_head numbered(std::uint64_t number) { return {number, 0, 0, 0, WEIR_HAS_NUMBER}; }

/// A link to a partition. Every function throws Error.
class Link {
public:
    Link(const std::string &at, const Settings &settings) {
        const weir_settings raw = settings.raw();
        link_.reset(weir_open(at.c_str(), &raw));
        if (!link_) {
            throw Error(weir_error_code(nullptr), weir_error(nullptr));
        }
    }

    /// An order, or WEIR_NOTHING; `run` is set by WEIR_START.
    weir_order wait(std::chrono::milliseconds at_most, std::uint32_t &run) {
        const weir_order order = weir_wait(link_.get(), static_cast<int>(at_most.count()), &run);
        if (order == WEIR_ERROR) {
            fail();
        }
        return order;
    }

    /// Space for a payload, or nullptr if the partition is busy.
    std::uint8_t *reserve(std::size_t len) {
        void *const slot = weir_reserve(link_.get(), len);
        if (slot == nullptr && weir_error_code(link_.get()) != WEIR_BUSY) {
            fail();
        }
        return static_cast<std::uint8_t *>(slot);
    }

    void commit(const weir_head &head, std::size_t len) { check(weir_commit(link_.get(), &head, len)); }

    /// Whether the payload was sent; if not, the partition is busy.
    bool send(const weir_head &head, const void *payload, std::size_t len) {
        const weir_code code = weir_send(link_.get(), &head, payload, len);
        if (code == WEIR_BUSY) {
            return false;
        }
        check(code);
        return true;
    }

    void idle(std::uint64_t number, std::uint64_t time = 0) { check(weir_idle(link_.get(), number, time)); }
    void report(const std::string &text) { check(weir_report(link_.get(), text.c_str())); }
    void end() { check(weir_end(link_.get())); }
    /// `function` of yours runs from now on; see weir_inside().
    void inside(const char *function) { check(weir_inside(link_.get(), function)); }
    void flush() { check(weir_flush(link_.get())); }
    std::size_t size_max() const { return weir_size_max(link_.get()); }
    /// Readable while an order waits, for poll(); do not read from it or close it.
    int orders() const { return weir_orders(link_.get()); }

private:
    struct Close {
        void operator()(weir_link *link) const { weir_close(link); }
    };

    void check(weir_code code) const {
        if (code != WEIR_OK) {
            fail();
        }
    }

    [[noreturn]] void fail() const { throw Error(weir_error_code(link_.get()), weir_error(link_.get())); }

    std::unique_ptr<weir_link, Close> link_;
};

/// What read() has put into the slot: its first `len` bytes. Or what idle(), passed() and ended() say.
struct Fragment {
    weir_head head;
    std::size_t len;
    weir_reading reading = WEIR_READ_COMMITTED;
};

/// Nothing is there, and no fragment of a lower number will come.
inline Fragment idle(std::uint64_t number) { return {numbered(number), 0, WEIR_READ_IDLE}; }

/// Nothing is there, and none will come that begins before this time in ns.
inline Fragment passed(std::uint64_t time) { return {{0, time, 0, 0, WEIR_HAS_TIME}, 0, WEIR_READ_IDLE}; }

/// Nothing is there, and nothing more will come in this run.
inline Fragment ended() { return {{}, 0, WEIR_READ_END}; }

/// A source: derive from it, and give it to run(). What a function throws ends the source.
class Source {
public:
    virtual ~Source() = default;
    virtual void configure(const weir_settings &) {}
    virtual void start(std::uint32_t) {}
    /// A fragment, or nothing if none is there now; or idle(), passed(), ended(). Returns within the deadline.
    virtual std::optional<Fragment> read(std::uint8_t *slot, std::size_t size) = 0;
    virtual void stop() {}
    virtual std::string status() { return {}; }
};

namespace detail {

/// A source behind the functions of weir_source. No exception may pass through C: the first one is kept.
struct Behind {
    Source &source;
    std::string said;
    std::exception_ptr thrown;

    template <typename Result, typename Call> Result guarded(Result failed, Call call) {
        try {
            return thrown ? failed : call();
        } catch (...) {
            thrown = std::current_exception();
            return failed;
        }
    }

    static Behind &of(void *context) { return *static_cast<Behind *>(context); }

    static int configure(void *context, const weir_settings *settings) {
        return of(context).guarded(1, [=] { return of(context).source.configure(*settings), 0; });
    }

    static int start(void *context, std::uint32_t run) {
        return of(context).guarded(1, [=] { return of(context).source.start(run), 0; });
    }

    static weir_reading read(void *context, void *slot, std::size_t size, weir_head *head, std::size_t *len) {
        return of(context).guarded(WEIR_READ_FAILED, [=] {
            const auto found = of(context).source.read(static_cast<std::uint8_t *>(slot), size);
            if (!found) {
                return WEIR_READ_NOTHING;
            }
            *head = found->head;
            *len = found->len;
            return found->reading;
        });
    }

    static int stop(void *context) {
        return of(context).guarded(1, [=] { return of(context).source.stop(), 0; });
    }

    static const char *status(void *context) {
        Behind &here = of(context);
        return here.guarded<const char *>(nullptr, [&] { return (here.said = here.source.status()).c_str(); });
    }
};

}  // namespace detail

/// Runs a source until the partition ends the link; throws Error, or what the source has thrown. After WEIR_BLOCKED a thread may still
/// use the source: end the program.
inline void run(const std::string &at, const Settings &settings, Source &source) {
    using detail::Behind;
    auto behind = std::make_unique<Behind>(Behind{source, {}, nullptr});
    const weir_source functions = {behind.get(), Behind::configure, Behind::start, Behind::read, Behind::stop, Behind::status};
    const weir_settings raw = settings.raw();
    const weir_code code = weir_run(at.c_str(), &raw, &functions);
    if (code == WEIR_BLOCKED) {
        // The thread that was left behind may come back to it.
        static_cast<void>(behind.release());
    } else if (behind->thrown) {
        std::rethrow_exception(behind->thrown);
    }
    if (code != WEIR_OK) {
        throw Error(code, weir_error(nullptr));
    }
}

}  // namespace weir

#endif
