// An adapter of Weir: it declares names of the public interface of MIDAS, and holds no code of MIDAS. See docs/adapters.md.
//
// A front end whose equipments are sources of Weir: each has a link of its own, and its events travel as MIDAS writes them.
#ifndef WEIR_TMFE_H
#define WEIR_TMFE_H

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../adapter.hpp"
#include "midas.h"
#include "mvodb.h"

class TMFrontend;

/// How a handler went: an error ends the source, and run control is told.
struct TMFeResult {
    int error_code = 0;
    std::string error_message;

    TMFeResult() = default;
    TMFeResult(int code, const std::string &message) : error_code(code), error_message(message) {}
};

inline TMFeResult TMFeOk() { return {}; }
inline TMFeResult TMFeErrorMessage(const std::string &message) { return {1, message}; }

/// What all parts of a front end share.
class TMFE {
public:
    static TMFE *Instance() {
        static TMFE shared;
        return &shared;
    }

    std::string fFrontendName;
    std::string fProgramName;
    std::string fFrontendHostname;
    std::string fFrontendFilename;
    std::atomic<bool> fShutdownRequested{false};
    std::atomic<int> fRunNumber{0};
    std::atomic<bool> fStateRunning{false};
    MVOdb *fOdbRoot = &root_;

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

    /// In seconds.
    static double GetTime() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }
    static void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

private:
    friend class TMFrontend;

    TMFE() {
        char name[256] = "";
        ::gethostname(name, sizeof name - 1);
        fFrontendHostname = name;
    }

    MVOdb root_;
    std::mutex mutex_;
    weir::adapter::Session *session_ = nullptr;
};

/// An equipment: derive from it, and override the handlers.
class TMFeEquipment {
public:
    std::string fEqName;
    std::string fEqFilename;
    TMFE *fMfe = TMFE::Instance();
    TMFrontend *fFe = nullptr;

    bool fEqConfEnabled = true;
    std::uint16_t fEqConfEventId = 1;
    std::uint16_t fEqConfTriggerMask = 0;
    int fEqConfPeriodMilliSec = 1000;
    bool fEqConfReadConfigFromOdb = true;
    bool fEqConfReadOnlyWhenRunning = true;
    bool fEqConfEnablePeriodic = true;
    bool fEqConfEnablePoll = false;
    double fEqConfPollSleepPeriodSec = 0.0001;
    // Of what follows Weir does nothing: docs/adapters.md.
    bool fEqConfEnableRpc = true;
    bool fEqConfHidden = false;
    bool fEqConfWriteEventsToOdb = false;
    int fEqConfLogHistory = 0;
    int fEqConfWriteCacheSize = 0;
    double fEqConfEventLimit = 0;
    double fEqConfPeriodStatisticsSec = 1;
    std::string fEqConfBuffer = "SYSTEM";
    std::string fEqConfFormat = "MIDAS";

    MVOdb *fOdbEq = nullptr;
    MVOdb *fOdbEqCommon = nullptr;
    MVOdb *fOdbEqSettings = nullptr;
    MVOdb *fOdbEqVariables = nullptr;

    /// Sent in this run.
    double fEqStatEvents = 0;
    double fEqStatBytes = 0;

    TMFeEquipment(const char *name, const char *file) : fEqName(name), fEqFilename(file) {}
    virtual ~TMFeEquipment() { EqStopPollThread(); }
    TMFeEquipment(const TMFeEquipment &) = delete;
    TMFeEquipment &operator=(const TMFeEquipment &) = delete;

    virtual void HandleUsage() {}
    virtual TMFeResult HandleInit(const std::vector<std::string> &) { return TMFeOk(); }
    virtual TMFeResult HandleBeginRun(int) { return TMFeOk(); }
    virtual TMFeResult HandleEndRun(int) { return TMFeOk(); }
    virtual TMFeResult HandlePauseRun(int) { return TMFeOk(); }
    virtual TMFeResult HandleResumeRun(int) { return TMFeOk(); }
    virtual TMFeResult HandleStartAbortRun(int) { return TMFeOk(); }
    virtual TMFeResult HandleRpc(const char *, const char *, std::string &) { return TMFeOk(); }
    virtual void HandlePeriodic() {}
    virtual bool HandlePoll() { return false; }
    virtual void HandlePollRead() {}

    /// Begins an event in memory of `size` bytes.
    TMFeResult ComposeEvent(char *event, std::size_t size) const {
        if (size < sizeof(EVENT_HEADER)) {
            return too_small(size);
        }
        const EVENT_HEADER head = {static_cast<std::int16_t>(fEqConfEventId), static_cast<std::int16_t>(fEqConfTriggerMask), serial_,
                                   static_cast<DWORD>(std::time(nullptr)), 0};
        std::memcpy(event, &head, sizeof head);
        return TMFeOk();
    }

    /// Begins its banks: of 32 bits, aligned to 64 bits.
    TMFeResult BkInit(char *event, std::size_t size) const {
        if (size < BANKS_AT + BANKS_HEAD_BYTES) {
            return too_small(size);
        }
        put_word(event + BANKS_AT + 4, BANKS_FLAGS);
        set_banks_bytes(event, 0);
        return TMFeOk();
    }

    /// Begins a bank with a name of four letters; gives the address of its data.
    void *BkOpen(char *event, const char *name, int type) const {
        char *const bank = end_of_banks(event);
        for (std::size_t at = 0; at < 4; at++) {
            bank[at] = at < std::strlen(name) ? name[at] : '\0';
        }
        put_word(bank + 4, static_cast<DWORD>(type));
        put_word(bank + 8, 0);
        put_word(bank + 12, 0);
        return bank + BANK_HEAD_BYTES;
    }

    /// Ends the bank that was begun last, behind its data.
    TMFeResult BkClose(char *event, void *end) const {
        char *const data = end_of_banks(event) + BANK_HEAD_BYTES;
        const std::ptrdiff_t bytes = static_cast<char *>(end) - data;
        if (bytes < 0) {
            return TMFeErrorMessage("BkClose: the end of the bank lies before its begin");
        }
        const std::size_t filled = (static_cast<std::size_t>(bytes) + 7) / 8 * 8;
        std::memset(data + bytes, 0, filled - static_cast<std::size_t>(bytes));
        put_word(data - BANK_HEAD_BYTES + 8, static_cast<DWORD>(bytes));
        set_banks_bytes(event, word(event + BANKS_AT) + static_cast<DWORD>(BANK_HEAD_BYTES + filled));
        return TMFeOk();
    }

    /// Sends an event as a fragment, from any thread. Waits while the partition is busy. Without a run or a link the event is dropped.
    TMFeResult EqSendEvent(const char *event, bool = true) {
        EVENT_HEADER head;
        std::memcpy(&head, event, sizeof head);
        if (head.serial_number == 0) {
            return TMFeErrorMessage("EqSendEvent: serial number 0: expected numbers from 1 on, as ComposeEvent writes them");
        }
        serial_ = head.serial_number + 1;
        const std::size_t bytes = sizeof head + head.data_size;
        try {
            const weir_head number = weir::numbered(head.serial_number - 1);
            if (session_ != nullptr && session_->send(number, bytes, [=](std::uint8_t *slot) { std::memcpy(slot, event, bytes); })) {
                fEqStatEvents++;
                fEqStatBytes += static_cast<double>(bytes);
            }
        } catch (const weir::Error &error) {
            // Who looks at no result would lose every event without a word.
            session_->fail(std::string("EqSendEvent: ") + error.what() + ": see source.size_max");
        }
        return TMFeOk();
    }

    TMFeResult EqSendEvent(const std::vector<char> &event, bool write = true) {
        EVENT_HEADER head = {};
        std::memcpy(&head, event.data(), std::min(event.size(), sizeof head));
        if (event.size() < sizeof head + head.data_size) {
            return TMFeErrorMessage("EqSendEvent: the event is longer than the memory that it lies in");
        }
        return EqSendEvent(event.data(), write);
    }

    TMFeResult EqSetStatus(const char *status, const char *) {
        if (session_ != nullptr) {
            session_->say(status);
        }
        return TMFeOk();
    }

    /// Polls in a thread of its own from now on.
    void EqStartPollThread();
    void EqStopPollThread() {
        polls_ = false;
        if (poll_thread_.joinable()) {
            poll_thread_.join();
        }
    }

private:
    friend class TMFrontend;

    static constexpr std::size_t BANKS_AT = sizeof(EVENT_HEADER);
    static constexpr std::size_t BANKS_HEAD_BYTES = 8;
    static constexpr std::size_t BANK_HEAD_BYTES = 16;
    /// First version of banks; of 32 bits; aligned to 64 bits.
    static constexpr DWORD BANKS_FLAGS = 1 | 1 << 4 | 1 << 5;

    static TMFeResult too_small(std::size_t size) { return TMFeErrorMessage("the memory of the event has " + std::to_string(size) + " bytes"); }

    static DWORD word(const char *at) {
        DWORD value;
        std::memcpy(&value, at, sizeof value);
        return value;
    }

    static void put_word(char *at, DWORD value) { std::memcpy(at, &value, sizeof value); }

    static char *end_of_banks(char *event) { return event + BANKS_AT + BANKS_HEAD_BYTES + word(event + BANKS_AT); }

    static void set_banks_bytes(char *event, DWORD bytes) {
        put_word(event + BANKS_AT, bytes);
        put_word(event + offsetof(EVENT_HEADER, data_size), static_cast<DWORD>(BANKS_HEAD_BYTES) + bytes);
    }

    /// Reads while there is something, for so long. Whether it has read anything.
    bool poll(std::chrono::milliseconds at_most) {
        const std::lock_guard<std::mutex> lock(polling_);
        const auto begun = weir::adapter::Clock::now();
        bool has_read = false;
        while (is_running_ && HandlePoll()) {
            HandlePollRead();
            has_read = true;
            if (weir::adapter::Clock::now() - begun > at_most || (session_ != nullptr && session_->has_given_up())) {
                break;
            }
        }
        return has_read;
    }

    std::unique_ptr<weir::adapter::Session> session_;
    std::atomic<DWORD> serial_{1};
    std::atomic<bool> is_running_{false};
    std::atomic<bool> polls_{false};
    std::mutex polling_;
    std::thread poll_thread_;
    weir::adapter::Clock::time_point next_period_{};
};

/// A front end: its constructor names it and adds equipments; main() calls FeMain().
class TMFrontend {
public:
    TMFE *fMfe = TMFE::Instance();
    int fFeIndex = 0;
    std::vector<TMFeEquipment *> fFeEquipments;

    TMFrontend() = default;
    virtual ~TMFrontend() { FeDeleteEquipments(); }
    TMFrontend(const TMFrontend &) = delete;
    TMFrontend &operator=(const TMFrontend &) = delete;

    virtual void HandleUsage() {}
    virtual TMFeResult HandleArguments(const std::vector<std::string> &) { return TMFeOk(); }
    virtual TMFeResult HandleFrontendInit(const std::vector<std::string> &) { return TMFeOk(); }
    virtual TMFeResult HandleFrontendReady(const std::vector<std::string> &) { return TMFeOk(); }
    virtual void HandleFrontendExit() {}

    void FeSetName(const char *name) { fMfe->fFrontendName = fMfe->fProgramName = name; }

    /// The front end deletes it at its end.
    TMFeResult FeAddEquipment(TMFeEquipment *equipment) {
        equipment->fFe = this;
        fFeEquipments.push_back(equipment);
        return TMFeOk();
    }

    int FeMain(int argc, char *argv[]) {
        try {
            if (!take(weir::adapter::Arguments(argc, argv))) {
                return 0;
            }
            begin();
        } catch (const std::exception &error) {
            std::fprintf(stderr, "%s: %s\n", fMfe->fFrontendName.c_str(), error.what());
            return 1;
        }
        while (!fMfe->fShutdownRequested) {
            step();
        }
        return end();
    }

private:
    friend class TMFeEquipment;
    using Milliseconds = std::chrono::milliseconds;

    static constexpr Milliseconds POLL_AT_MOST{5};
    static constexpr Milliseconds STEP_AT_MOST{5};

    /// False if help was all that was wanted.
    bool take(weir::adapter::Arguments arguments) {
        while (arguments.next()) {
            const std::string option = arguments.option();
            if (option == "--help") {
                say_usage();
                return false;
            } else if (option == "--") {
                arguments_.assign(arguments.rest().begin(), arguments.rest().end());
                break;
            } else if (option == "-h") {
                place(arguments.value());
            } else if (option == "-i") {
                fFeIndex = index_of(arguments.value());
            } else if (option == "-e") {
                arguments.value();
            } else if (option == "-v") {
                TMFE::gfVerbose = true;
            } else if (option == "--odb") {
                read_odb(arguments.value());
            } else if (option == "-s") {
                const auto [path, value] = arguments.assignment();
                fMfe->fOdbRoot->set(path, items(value));
            } else if (!arguments.takes(settings_)) {
                arguments.refuse();
            }
        }
        return true;
    }

    void say_usage() {
        std::printf("usage: %s [options] [-- arguments of the front end]\n"
                    "  -h ADDRESS        where the partition listens: shm:NAME or tcp://HOST:PORT; otherwise shm:EQUIPMENT\n"
                    "  -h EQUIPMENT=ADDRESS  the same for each of several equipments; one without it sends nothing\n"
                    "  -i NUMBER         index of the front end: takes the place of %%d in names\n"
                    "  -s PATH=VALUE     a value of the database, such as -s /Equipment/adc/Settings/threshold=12\n"
                    "  --odb FILE        lines PATH = VALUE\n"
                    "  -v                verbose\n"
                    "  -e NAME           taken and ignored\n%s",
                    fMfe->fFrontendName.c_str(), weir::adapter::Arguments::COMMON_USAGE);
        HandleUsage();
        for (TMFeEquipment *equipment : fFeEquipments) {
            equipment->HandleUsage();
        }
    }

    static int index_of(const std::string &text) {
        if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos) {
            throw std::invalid_argument("-i " + text + ": expected a number from 0 to 999999");
        }
        return std::stoi(text);
    }

    void place(const std::string &text) {
        const auto equals = text.find('=');
        const bool is_address = text.rfind("shm:", 0) == 0 || text.rfind("tcp:", 0) == 0;
        const bool has_name = !is_address && equals != std::string::npos;
        places_[has_name ? text.substr(0, equals) : ""] = has_name ? text.substr(equals + 1) : text;
    }

    /// Everything up to the first order.
    void begin() {
        check("HandleArguments", fMfe->fFrontendName, [this] { return HandleArguments(arguments_); });
        check("HandleFrontendInit", fMfe->fFrontendName, [this] { return HandleFrontendInit(arguments_); });
        for (TMFeEquipment *equipment : fFeEquipments) {
            configure(*equipment);
            check("HandleInit", equipment->fEqName, [=] { return equipment->HandleInit(arguments_); });
        }
        check_places();
        for (TMFeEquipment *equipment : fFeEquipments) {
            connect(*equipment);
        }
        if (first() == nullptr) {
            throw std::invalid_argument("no equipment has a link: expected -h EQUIPMENT=ADDRESS");
        }
        weir::adapter::Interrupt::expect();
        check("HandleFrontendReady", fMfe->fFrontendName, [this] { return HandleFrontendReady(arguments_); });
    }

    void configure(TMFeEquipment &equipment) {
        equipment.fEqName = indexed(equipment.fEqName);
        equipment.fEqConfBuffer = indexed(equipment.fEqConfBuffer);
        equipment.fOdbEq = fMfe->fOdbRoot->Chdir(("/Equipment/" + equipment.fEqName).c_str());
        equipment.fOdbEqCommon = equipment.fOdbEq->Chdir("Common");
        equipment.fOdbEqSettings = equipment.fOdbEq->Chdir("Settings");
        equipment.fOdbEqVariables = equipment.fOdbEq->Chdir("Variables");
        equipment.fOdbEqCommon->RB("Enabled", &equipment.fEqConfEnabled);
        if (equipment.fEqConfReadConfigFromOdb) {
            equipment.fOdbEqCommon->RU16("Event ID", &equipment.fEqConfEventId);
            equipment.fOdbEqCommon->RU16("Trigger mask", &equipment.fEqConfTriggerMask);
            equipment.fOdbEqCommon->RI("Period", &equipment.fEqConfPeriodMilliSec);
        }
        if (equipment.fEqConfEventLimit > 0) {
            std::fprintf(stderr, "weir: equipment %s: fEqConfEventLimit ends no run: give weir run --events\n", equipment.fEqName.c_str());
        }
    }

    /// Every address is that of an equipment; the only one need not be named.
    void check_places() {
        if (fFeEquipments.size() == 1 && places_.empty()) {
            places_[""] = "shm:" + fFeEquipments.front()->fEqName;
        }
        const auto nameless = places_.find("");
        if (nameless != places_.end()) {
            if (fFeEquipments.size() != 1) {
                throw std::invalid_argument("-h " + nameless->second + ": there are several equipments: expected -h EQUIPMENT=ADDRESS");
            }
            places_[fFeEquipments.front()->fEqName] = nameless->second;
            places_.erase(nameless);
        }
        for (const auto &[name, address] : places_) {
            bool is_there = false;
            for (const TMFeEquipment *equipment : fFeEquipments) {
                is_there = is_there || equipment->fEqName == name;
            }
            if (!is_there) {
                throw std::invalid_argument("-h " + name + "=" + address + ": no equipment has this name");
            }
        }
    }

    void connect(TMFeEquipment &equipment) {
        const auto found = places_.find(equipment.fEqName);
        if (!equipment.fEqConfEnabled || found == places_.end()) {
            std::fprintf(stderr, "weir: equipment %s %s: it sends no events\n", equipment.fEqName.c_str(),
                         equipment.fEqConfEnabled ? "has no -h EQUIPMENT=ADDRESS" : "is disabled");
            return;
        }
        weir::Settings settings = settings_;
        settings.name = equipment.fEqName;
        equipment.session_ = std::make_unique<weir::adapter::Session>(found->second, settings);
        const std::lock_guard<std::mutex> lock(fMfe->mutex_);
        fMfe->session_ = fMfe->session_ == nullptr ? equipment.session_.get() : fMfe->session_;
    }

    /// Orders, then periods, then polls, then a pause.
    void step() {
        auto pause = std::chrono::duration_cast<std::chrono::microseconds>(STEP_AT_MOST);
        for (TMFeEquipment *equipment : fFeEquipments) {
            if (equipment->session_ != nullptr) {
                obey(*equipment, equipment->session_->next_order(Milliseconds(0)));
            }
        }
        for (TMFeEquipment *equipment : fFeEquipments) {
            period(*equipment);
            if (equipment->fEqConfEnabled && equipment->fEqConfEnablePoll && !equipment->polls_ && equipment->is_running_) {
                bool has_read = false;
                call("HandlePoll", *equipment, [&] { has_read = equipment->poll(POLL_AT_MOST); });
                const auto sleep = std::chrono::duration<double>(has_read ? 0 : equipment->fEqConfPollSleepPeriodSec);
                pause = std::min(pause, std::chrono::duration_cast<std::chrono::microseconds>(sleep));
            }
        }
        std::this_thread::sleep_for(pause);
    }

    void period(TMFeEquipment &equipment) {
        const auto now = weir::adapter::Clock::now();
        const bool is_wanted = equipment.fEqConfEnabled && equipment.fEqConfEnablePeriodic &&
                               (equipment.is_running_ || !equipment.fEqConfReadOnlyWhenRunning);
        if (is_wanted && now >= equipment.next_period_) {
            equipment.next_period_ = now + Milliseconds(equipment.fEqConfPeriodMilliSec);
            call("HandlePeriodic", equipment, [&] { equipment.HandlePeriodic(); });
        }
    }

    void obey(TMFeEquipment &equipment, const weir::adapter::Order &order) {
        // An equipment without a link of its own goes with the first one that has one.
        for (TMFeEquipment *each : fFeEquipments) {
            if (each == &equipment || (each->session_ == nullptr && &equipment == first())) {
                if (order.kind == WEIR_START) {
                    begin_run(*each, static_cast<int>(order.run));
                } else if (order.kind != WEIR_NOTHING) {
                    end_run(*each);
                }
            }
        }
        if (order.kind == WEIR_END || order.kind == WEIR_ERROR) {
            fMfe->fShutdownRequested = true;
            has_failed_ = has_failed_ || order.kind == WEIR_ERROR;
        }
        if (order.kind != WEIR_NOTHING) {
            equipment.session_->done();
        }
    }

    void begin_run(TMFeEquipment &equipment, int run) {
        fMfe->fRunNumber = run;
        fMfe->fStateRunning = true;
        equipment.serial_ = 1;
        equipment.fEqStatEvents = equipment.fEqStatBytes = 0;
        if (equipment.fEqConfEnabled) {
            check("HandleBeginRun", equipment.fEqName, [&] { return equipment.HandleBeginRun(run); }, equipment.session_.get());
        }
        equipment.is_running_ = true;
    }

    void end_run(TMFeEquipment &equipment) {
        if (equipment.is_running_) {
            if (equipment.fEqConfEnabled && equipment.fEqConfEnablePoll) {
                call("HandlePoll", equipment, [&] { equipment.poll(DRAIN_AT_MOST); });
            }
            if (equipment.fEqConfEnabled) {
                const int run = fMfe->fRunNumber;
                check("HandleEndRun", equipment.fEqName, [&] { return equipment.HandleEndRun(run); }, equipment.session_.get());
            }
            const std::lock_guard<std::mutex> lock(equipment.polling_);
            equipment.is_running_ = false;
        }
        if (equipment.session_ != nullptr) {
            const std::uint64_t dropped = equipment.session_->end();
            if (dropped > 0) {
                std::fprintf(stderr, "weir: source %s: %llu events were dropped: sent outside of a run, or at its end to a busy partition\n", equipment.fEqName.c_str(),
                             static_cast<unsigned long long>(dropped));
            }
        }
        fMfe->fStateRunning = false;
        for (const TMFeEquipment *each : fFeEquipments) {
            fMfe->fStateRunning = fMfe->fStateRunning || each->is_running_;
        }
    }

    int end() {
        for (TMFeEquipment *equipment : fFeEquipments) {
            end_run(*equipment);
            equipment->EqStopPollThread();
        }
        HandleFrontendExit();
        for (const TMFeEquipment *equipment : fFeEquipments) {
            if (equipment->session_ != nullptr && !equipment->session_->why().empty()) {
                std::fprintf(stderr, "weir: source %s: %s\n", equipment->fEqName.c_str(), equipment->session_->why().c_str());
            }
        }
        FeDeleteEquipments();
        const int signal = weir::adapter::Interrupt::came();
        return signal != 0 ? 128 + signal : has_failed_ ? 1 : 0;
    }

    void FeDeleteEquipments() {
        {
            const std::lock_guard<std::mutex> lock(fMfe->mutex_);
            fMfe->session_ = nullptr;
        }
        for (TMFeEquipment *equipment : fFeEquipments) {
            delete equipment;
        }
        fFeEquipments.clear();
    }

    const TMFeEquipment *first() const {
        for (const TMFeEquipment *equipment : fFeEquipments) {
            if (equipment->session_ != nullptr) {
                return equipment;
            }
        }
        return nullptr;
    }

    weir::adapter::Session *session_of(const TMFeEquipment &equipment) const {
        return equipment.session_ != nullptr ? equipment.session_.get() : first() == nullptr ? nullptr : first()->session_.get();
    }

    template <typename Call> void call(const char *function, TMFeEquipment &equipment, Call call) {
        const weir::adapter::Inside inside(equipment.fEqName, function);
        weir::adapter::guarded(session_of(equipment), equipment.fEqName, function, call);
    }

    /// Calls a handler that says how it went.
    template <typename Call>
    void check(const char *function, const std::string &whose, Call call, weir::adapter::Session *session = nullptr) {
        const weir::adapter::Inside inside(whose, function);
        weir::adapter::guarded(session, whose, function, [&] {
            const TMFeResult result = call();
            if (result.error_code != 0) {
                throw std::runtime_error(result.error_message);
            }
        });
    }

    void read_odb(const std::string &file) {
        std::ifstream text(file);
        if (!text) {
            throw std::invalid_argument(file + ": cannot be read");
        }
        std::string line;
        for (unsigned number = 1; std::getline(text, line); number++) {
            line = stripped(line.substr(0, line.find('#')));
            const auto equals = line.find('=');
            if (line.empty()) {
                continue;
            }
            if (line.front() != '/' || equals == std::string::npos) {
                throw std::invalid_argument(file + ", line " + std::to_string(number) + ": \"" + line + "\": expected /PATH = VALUE");
            }
            fMfe->fOdbRoot->set(stripped(line.substr(0, equals)), items(line.substr(equals + 1)));
        }
    }

    static MVOdb::Values items(const std::string &text) {
        MVOdb::Values items;
        for (std::size_t from = 0; from != std::string::npos;) {
            const auto comma = text.find(',', from);
            items.push_back(stripped(text.substr(from, comma == std::string::npos ? comma : comma - from)));
            from = comma == std::string::npos ? comma : comma + 1;
        }
        return items;
    }

    static std::string stripped(const std::string &text) {
        const auto begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
        return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
    }

    /// With the index in place of %d, %02d, %x and the like.
    std::string indexed(const std::string &name) const {
        const auto percent = name.find('%');
        const auto letter = percent == std::string::npos ? percent : name.find_first_not_of("0123456789", percent + 1);
        if (letter == std::string::npos || std::strchr("dxX", name[letter]) == nullptr) {
            return name;
        }
        const std::string width = name.substr(percent + 1, letter - percent - 1);
        char digits[32];
        std::snprintf(digits, sizeof digits, name[letter] == 'd' ? "%d" : name[letter] == 'x' ? "%x" : "%X", fFeIndex);
        std::string number = digits;
        const std::size_t wanted = width.empty() ? 0 : static_cast<std::size_t>(index_of(width));
        number.insert(0, wanted > number.size() ? wanted - number.size() : 0, width[0] == '0' ? '0' : ' ');
        return name.substr(0, percent) + number + name.substr(letter + 1);
    }

    /// How long a device that never runs dry is read at the end of a run.
    static constexpr Milliseconds DRAIN_AT_MOST{500};

    weir::Settings settings_;
    std::vector<std::string> arguments_;
    /// Addresses by equipment; "" stands for the only one.
    std::map<std::string, std::string> places_;
    bool has_failed_ = false;
};

inline void TMFeEquipment::EqStartPollThread() {
    polls_ = true;
    poll_thread_ = std::thread([this] {
        while (polls_) {
            bool has_read = false;
            // Before the first run there may be no link yet.
            if (is_running_) {
                weir::adapter::guarded(fFe->session_of(*this), fEqName, "HandlePoll", [&] { has_read = poll(TMFrontend::POLL_AT_MOST); });
            }
            if (!has_read) {
                TMFE::Sleep(fEqConfPollSleepPeriodSec);
            }
        }
    });
}

#endif
