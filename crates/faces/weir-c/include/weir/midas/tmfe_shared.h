// An adapter of Weir: it declares names of the public interface of MIDAS, and holds no code of MIDAS. See docs/adapters.md.
//
// What equipments and front ends of tmfe.h share.
#ifndef WEIR_TMFE_SHARED_H
#define WEIR_TMFE_SHARED_H

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "../adapter.hpp"
#include "midas.h"
#include "mvodb.h"

class TMFrontend;

/// How a handler went: an error ends the source, and run control is told.
class TMFeResult {
public:
    bool error_flag = false;
    int error_code = 0;
    std::string error_message = "success";

    TMFeResult() = default;
    TMFeResult(int code, const std::string &message) : error_flag(true), error_code(code), error_message(message) {}
};

inline TMFeResult TMFeOk() { return {}; }
inline TMFeResult TMFeErrorMessage(const std::string &message) { return {1, message}; }
inline TMFeResult TMFeMidasError(const std::string &message, const char *function, int status) {
    return {status, message + ": " + function + "() gave " + std::to_string(status)};
}

/// Who is told of runs: an equipment, or what AddRpcHandler() has got.
class TMFeRpcHandlerInterface {
public:
    virtual ~TMFeRpcHandlerInterface() = default;
    virtual TMFeResult HandleBeginRun(int) { return TMFeOk(); }
    virtual TMFeResult HandleEndRun(int) { return TMFeOk(); }
    // A run of Weir has no such moments: docs/adapters.md.
    virtual TMFeResult HandlePauseRun(int) { return TMFeOk(); }
    virtual TMFeResult HandleResumeRun(int) { return TMFeOk(); }
    virtual TMFeResult HandleStartAbortRun(int) { return TMFeOk(); }
    virtual TMFeResult HandleRpc(const char *, const char *, std::string &) { return TMFeOk(); }
};

/// What all parts of a front end share.
class TMFE {
public:
    static TMFE *Instance() {
        static TMFE shared;
        return &shared;
    }

    std::string fExptname;
    std::string fMserverHostname;
    std::string fProgramName;
    std::string fHostname;
    // Programs print them as what they are in MIDAS, so they are not atomic.
    bool fShutdownRequested = false;
    int fRunNumber = 0;
    bool fStateRunning = false;
    std::mutex fMutex;
    MVOdb *fOdbRoot = &root_;
    std::vector<TMFeRpcHandlerInterface *> fRpcHandlers;
    // Of what follows Weir does nothing: docs/adapters.md.
    int fDB = 0;
    bool fIfRunningCallExit = false;
    bool fIfRunningCallBeginRun = true;

    static inline bool gfVerbose = false;

    /// A message of a kind such as MINFO, as printf makes it; errors go to run control, too.
    __attribute__((format(printf, 6, 7))) void Msg(int kind, const char *file, int line, const char *routine, const char *format, ...) {
        std::va_list arguments;
        va_start(arguments, format);
        const std::string text = weir::midas::formatted(format, arguments);
        va_end(arguments);
        weir::midas::message(kind, file, line, routine, text);
        const std::lock_guard<std::mutex> lock(mutex_);
        if (kind == MT_ERROR && session_ != nullptr) {
            session_->say("ERROR: " + text);
        }
    }

    /// For a program with a main() of its own: names it. MIDAS_SERVER_HOST says where the partition listens.
    TMFeResult Connect(const char *program = nullptr, const char *host = nullptr, const char *experiment = nullptr);
    /// Ends the run and the links of such a program.
    TMFeResult Disconnect();

    /// Takes orders, and calls what is to be called at the begin and end of runs, in a thread of its own from now on.
    void StartRpcThread();
    void StopRpcThread() {
        rpc_runs_ = false;
        if (rpc_thread_.joinable()) {
            rpc_thread_.join();
        }
    }

    /// Takes orders for so many seconds.
    void Yield(double seconds);
    void MidasPeriodicTasks() { Yield(0); }

    void AddRpcHandler(TMFeRpcHandlerInterface *handler) { fRpcHandlers.push_back(handler); }
    void RemoveRpcHandler(TMFeRpcHandlerInterface *handler) {
        fRpcHandlers.erase(std::remove(fRpcHandlers.begin(), fRpcHandlers.end(), handler), fRpcHandlers.end());
    }

    /// Run control is told; a source ends or begins no run by itself.
    void StopRun() { say("wants the run to stop"); }
    void StartRun() { say("wants a run to start"); }
    TMFeResult TriggerAlarm(const char *name, const char *message, const char *, const char *) {
        say(std::string("ALARM ") + name + ": " + message);
        return TMFeOk();
    }
    TMFeResult ResetAlarm(const char *name) {
        say(std::string("no more alarm ") + name);
        return TMFeOk();
    }

    // Run control of Weir has an order of its own, and its deadline is --deadline.
    TMFeResult SetWatchdogSec(int) { return TMFeOk(); }
    void SetTransitionSequenceStart(int) {}
    void SetTransitionSequenceStop(int) {}
    void SetTransitionSequencePause(int) {}
    void SetTransitionSequenceResume(int) {}
    void SetTransitionSequenceStartAbort(int) {}
    void DeregisterTransitions() {}
    void DeregisterTransitionStart() {}
    void DeregisterTransitionStop() {}
    void DeregisterTransitionPause() {}
    void DeregisterTransitionResume() {}
    void DeregisterTransitionStartAbort() {}
    void RegisterTransitionStartAbort() {}
    void RegisterRPCs() {}

    static std::string GetThreadId() {
        std::ostringstream text;
        text << std::this_thread::get_id();
        return text.str();
    }

    /// In seconds.
    static double GetTime() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }
    static void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

private:
    friend class TMFrontend;

    TMFE() {
        char name[256] = "";
        ::gethostname(name, sizeof name - 1);
        fHostname = name;
    }

    /// A program may end without Disconnect().
    ~TMFE() { StopRpcThread(); }

    void say(const std::string &text) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (session_ != nullptr) {
            session_->say(text);
        }
    }

    // Several threads look at these.
    bool is_over() const { return __atomic_load_n(&fShutdownRequested, __ATOMIC_RELAXED); }
    template <typename T> static void put(T &shared, T value) { __atomic_store_n(&shared, value, __ATOMIC_RELAXED); }

    MVOdb root_;
    std::mutex mutex_;
    weir::adapter::Session *session_ = nullptr;
    static constexpr double YIELD_STEP = 0.005;

    /// Whose orders are taken.
    TMFrontend *frontend_ = nullptr;
    std::atomic<bool> rpc_runs_{false};
    std::thread rpc_thread_;
    /// The thread that takes orders: what it hangs in is named.
    std::atomic<std::thread::id> obeys_{std::this_thread::get_id()};
};

#endif
