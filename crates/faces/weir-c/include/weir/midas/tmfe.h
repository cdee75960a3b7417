// An adapter of Weir: it declares names of the public interface of MIDAS, and holds no code of MIDAS. See docs/adapters.md.
//
// A front end whose equipments are sources of Weir: each has a link of its own, and its events travel as MIDAS writes them.
#ifndef WEIR_TMFE_H
#define WEIR_TMFE_H

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tmfe_shared.h"

/// An equipment: derive from it, and override the handlers.
class TMFeEquipment : public TMFeRpcHandlerInterface {
public:
    std::string fEqName;
    std::string fEqFilename;
    TMFE *fMfe = TMFE::Instance();
    TMFrontend *fFe = nullptr;

    bool fEqConfEnabled = true;
    std::uint16_t fEqConfEventID = 1;
    std::uint16_t fEqConfTriggerMask = 0;
    int fEqConfPeriodMilliSec = 1000;
    bool fEqConfReadConfigFromOdb = true;
    bool fEqConfReadOnlyWhenRunning = true;
    bool fEqConfEnablePeriodic = true;
    bool fEqConfEnablePoll = false;
    double fEqConfPollSleepSec = 0.0001;
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
    int fEqConfType = 0;
    int fEqConfSource = 0;
    int fEqConfReadOn = 0;
    std::uint32_t fEqConfNumSubEvents = 0;
    std::size_t fEqConfMaxEventSize = 0;
    std::size_t fEqConfBufferSize = 0;

    std::mutex fEqMutex;
    MVOdb *fOdbEq = nullptr;
    MVOdb *fOdbEqCommon = nullptr;
    MVOdb *fOdbEqSettings = nullptr;
    MVOdb *fOdbEqVariables = nullptr;
    MVOdb *fOdbEqStatistics = nullptr;

    /// Sent in this run.
    double fEqStatEvents = 0;
    double fEqStatBytes = 0;

    TMFeEquipment(const char *name, const char *file) : fEqName(name), fEqFilename(file) {}
    ~TMFeEquipment() override { EqStopPollThread(); }
    TMFeEquipment(const TMFeEquipment &) = delete;
    TMFeEquipment &operator=(const TMFeEquipment &) = delete;

    virtual void HandleUsage() {}
    virtual TMFeResult HandleInit(const std::vector<std::string> &) { return TMFeOk(); }
    virtual void HandlePeriodic() {}
    virtual bool HandlePoll() { return false; }
    virtual void HandlePollRead() {}

    /// For a program with a main() of its own: calls HandleInit() and connects. A front end does both by itself.
    TMFeResult EqInit(const std::vector<std::string> &arguments);

    /// Begins an event in memory of `size` bytes.
    TMFeResult ComposeEvent(char *event, std::size_t size) const {
        if (size < sizeof(EVENT_HEADER)) {
            return too_small(size);
        }
        const EVENT_HEADER head = {static_cast<std::int16_t>(fEqConfEventID), static_cast<std::int16_t>(fEqConfTriggerMask), serial_,
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

    /// Of the banks, with their head, in bytes.
    int BkSize(const char *event) const { return static_cast<int>(BANKS_HEAD_BYTES + word(event + BANKS_AT)); }

    /// Sends an event as a fragment, from any thread. Waits while the partition is busy. Without a run or a link the event is dropped.
    TMFeResult EqSendEvent(const char *event, bool = true) {
        const std::size_t bytes = sizeof(EVENT_HEADER) + word(event + offsetof(EVENT_HEADER, data_size));
        return EqSendEvent(1, &event, &bytes);
    }

    TMFeResult EqSendEvent(const std::vector<char> &event, bool = true) {
        const char *const data = event.data();
        const std::size_t bytes = event.size();
        return EqSendEvent(1, &data, &bytes);
    }

    /// The same of an event in pieces; the first one has the whole head.
    TMFeResult EqSendEvent(const std::vector<std::vector<char>> &pieces, bool = true) {
        std::vector<const char *> data;
        std::vector<std::size_t> bytes;
        for (const std::vector<char> &piece : pieces) {
            data.push_back(piece.data());
            bytes.push_back(piece.size());
        }
        return EqSendEvent(static_cast<int>(pieces.size()), data.data(), bytes.data());
    }

    TMFeResult EqSendEvent(int count, const char *const data[], const std::size_t bytes[], bool = true) {
        EVENT_HEADER head = {};
        if (count < 1 || bytes[0] < sizeof head) {
            return TMFeErrorMessage("EqSendEvent: the head of the event is not in its first piece");
        }
        std::memcpy(&head, data[0], sizeof head);
        if (head.serial_number == 0) {
            return TMFeErrorMessage("EqSendEvent: serial number 0: expected numbers from 1 on, as ComposeEvent writes them");
        }
        const std::size_t all = sizeof head + head.data_size;
        if (std::accumulate(bytes, bytes + count, std::size_t{0}) < all) {
            return TMFeErrorMessage("EqSendEvent: the event is longer than the memory that it lies in");
        }
        serial_ = head.serial_number + 1;
        send(head.serial_number - 1, all, [=](std::uint8_t *slot) {
            std::size_t left = all;
            for (int at = 0; at < count; at++) {
                const std::size_t piece = std::min(left, bytes[at]);
                std::memcpy(slot + (all - left), data[at], piece);
                left -= piece;
            }
        });
        return TMFeOk();
    }

    TMFeResult EqZeroStatistics() {
        fEqStatEvents = fEqStatBytes = 0;
        return TMFeOk();
    }
    // Weir keeps no statistics and events in a database.
    TMFeResult EqWriteStatistics() { return TMFeOk(); }
    TMFeResult EqWriteEventToOdb(const char *) { return TMFeOk(); }

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

    template <typename Fill> void send(std::uint64_t number, std::size_t bytes, Fill fill) {
        try {
            if (session_ != nullptr && session_->send(weir::numbered(number), bytes, fill)) {
                fEqStatEvents++;
                fEqStatBytes += static_cast<double>(bytes);
            }
        } catch (const weir::Error &error) {
            // Who looks at no result would lose every event without a word.
            session_->fail(std::string("EqSendEvent: ") + error.what() + ": see source.size_max");
        }
    }

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

    void FeSetName(const char *name) { fMfe->fProgramName = name; }

    /// The front end deletes it at its end.
    TMFeResult FeAddEquipment(TMFeEquipment *equipment) {
        equipment->fFe = this;
        fFeEquipments.push_back(equipment);
        return TMFeOk();
    }

    /// Forgets an equipment without deleting it.
    TMFeResult FeRemoveEquipment(TMFeEquipment *equipment) {
        fFeEquipments.erase(std::remove(fFeEquipments.begin(), fFeEquipments.end(), equipment), fFeEquipments.end());
        return TMFeOk();
    }

    int FeMain(int argc, char *argv[]) { return main_of(weir::adapter::Arguments(argc, argv)); }

    /// The same with the arguments behind the name of the program.
    int FeMain(const std::vector<std::string> &arguments) { return main_of(weir::adapter::Arguments(arguments)); }

    void FeUsage(const char *program) {
        std::printf("usage: %s [options] [-- arguments of the front end]\n"
                    "  -h ADDRESS        where the partition listens: shm:NAME or tcp://HOST:PORT; otherwise shm:EQUIPMENT\n"
                    "  -h EQUIPMENT=ADDRESS  the same for each of several equipments; one without it sends nothing\n"
                    "  -i NUMBER         index of the front end: takes the place of %%d in names\n"
                    "  -s PATH=VALUE     a value of the database, such as -s /Equipment/adc/Settings/threshold=12\n"
                    "  --odb FILE        lines PATH = VALUE\n"
                    "  -v                verbose\n"
                    "  -e NAME           taken and ignored\n%s",
                    program, weir::adapter::Arguments::COMMON_USAGE);
        HandleUsage();
        for (TMFeEquipment *equipment : fFeEquipments) {
            equipment->HandleUsage();
        }
    }

    std::mutex fFeMutex;

private:
    friend class TMFE;
    friend class TMFeEquipment;
    using Milliseconds = std::chrono::milliseconds;

    static constexpr Milliseconds POLL_AT_MOST{5};
    static constexpr Milliseconds STEP_AT_MOST{5};

    /// That of a program with a main() of its own, which owns its equipments.
    static TMFrontend &of_main() {
        static TMFrontend *const shared = new TMFrontend;
        return *shared;
    }

    int main_of(weir::adapter::Arguments arguments) {
        try {
            if (!take(std::move(arguments))) {
                return 0;
            }
            begin();
        } catch (const std::exception &error) {
            std::fprintf(stderr, "%s: %s\n", fMfe->fProgramName.c_str(), error.what());
            return 1;
        }
        while (!fMfe->is_over()) {
            step();
        }
        return end();
    }

    /// False if help was all that was wanted.
    bool take(weir::adapter::Arguments arguments) {
        while (arguments.next()) {
            const std::string option = arguments.option();
            if (option == "--help") {
                FeUsage(fMfe->fProgramName.c_str());
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
        fMfe->frontend_ = this;
        check("HandleArguments", fMfe->fProgramName, [this] { return HandleArguments(arguments_); });
        check("HandleFrontendInit", fMfe->fProgramName, [this] { return HandleFrontendInit(arguments_); });
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
        check("HandleFrontendReady", fMfe->fProgramName, [this] { return HandleFrontendReady(arguments_); });
    }

    void configure(TMFeEquipment &equipment) {
        equipment.fEqName = indexed(equipment.fEqName);
        equipment.fEqConfBuffer = indexed(equipment.fEqConfBuffer);
        equipment.fOdbEq = fMfe->fOdbRoot->Chdir(("/Equipment/" + equipment.fEqName).c_str());
        equipment.fOdbEqCommon = equipment.fOdbEq->Chdir("Common");
        equipment.fOdbEqSettings = equipment.fOdbEq->Chdir("Settings");
        equipment.fOdbEqVariables = equipment.fOdbEq->Chdir("Variables");
        equipment.fOdbEqStatistics = equipment.fOdbEq->Chdir("Statistics");
        equipment.fOdbEqCommon->RB("Enabled", &equipment.fEqConfEnabled);
        if (equipment.fEqConfReadConfigFromOdb) {
            equipment.fOdbEqCommon->RU16("Event ID", &equipment.fEqConfEventID);
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

    /// What a program with a main() of its own has in place of a front end that begins.
    TMFeResult init(TMFeEquipment &equipment, const std::vector<std::string> &arguments) {
        FeAddEquipment(&equipment);
        configure(equipment);
        const TMFeResult result = equipment.HandleInit(arguments);
        if (result.error_flag) {
            return result;
        }
        if (places_.empty()) {
            places_[equipment.fEqName] = "shm:" + equipment.fEqName;
        } else if (const auto nameless = places_.find(""); nameless != places_.end()) {
            places_[equipment.fEqName] = nameless->second;
            places_.erase(nameless);
        }
        try {
            connect(equipment);
        } catch (const weir::Error &error) {
            // Who looks at no result would wait for runs without a word.
            std::fprintf(stderr, "%s: %s\n", fMfe->fProgramName.c_str(), error.what());
            fMfe->put(fMfe->fShutdownRequested, true);
            return TMFeErrorMessage(error.what());
        }
        return TMFeOk();
    }

    /// Addresses with commas between them, as -h has them.
    void place_all(const std::string &texts) {
        for (const std::string &text : items(texts)) {
            place(text);
        }
    }

    /// Orders, then periods, then polls, then a pause.
    void step() {
        if (!fMfe->rpc_runs_) {
            take_orders();
        }
        auto pause = std::chrono::duration_cast<std::chrono::microseconds>(STEP_AT_MOST);
        for (TMFeEquipment *equipment : fFeEquipments) {
            period(*equipment);
            if (equipment->fEqConfEnabled && equipment->fEqConfEnablePoll && !equipment->polls_ && equipment->is_running_) {
                bool has_read = false;
                call("HandlePoll", *equipment, [&] { has_read = equipment->poll(POLL_AT_MOST); });
                const auto sleep = std::chrono::duration<double>(has_read ? 0 : equipment->fEqConfPollSleepSec);
                pause = std::min(pause, std::chrono::duration_cast<std::chrono::microseconds>(sleep));
            }
        }
        std::this_thread::sleep_for(pause);
    }

    void take_orders() {
        fMfe->obeys_ = std::this_thread::get_id();
        for (TMFeEquipment *equipment : fFeEquipments) {
            if (equipment->session_ != nullptr) {
                obey(*equipment, equipment->session_->next_order(Milliseconds(0)));
            }
        }
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
        if (&equipment == first()) {
            tell_others(order);
        }
        if (order.kind == WEIR_END || order.kind == WEIR_ERROR) {
            fMfe->put(fMfe->fShutdownRequested, true);
            has_failed_ = has_failed_ || order.kind == WEIR_ERROR;
        }
        if (order.kind != WEIR_NOTHING) {
            equipment.session_->done();
        }
    }

    /// Handlers that are no equipments go with the first one that has a link.
    void tell_others(const weir::adapter::Order &order) {
        const bool begins = order.kind == WEIR_START;
        if (order.kind == WEIR_NOTHING || !(begins || is_told_)) {
            return;
        }
        is_told_ = begins;
        const int run = fMfe->fRunNumber;
        for (TMFeRpcHandlerInterface *handler : fMfe->fRpcHandlers) {
            if (dynamic_cast<TMFeEquipment *>(handler) == nullptr) {
                check(begins ? "HandleBeginRun" : "HandleEndRun", fMfe->fProgramName,
                      [=] { return begins ? handler->HandleBeginRun(run) : handler->HandleEndRun(run); }, first()->session_.get());
            }
        }
    }

    void begin_run(TMFeEquipment &equipment, int run) {
        fMfe->put(fMfe->fRunNumber, run);
        fMfe->put(fMfe->fStateRunning, true);
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
        bool is_running = false;
        for (const TMFeEquipment *each : fFeEquipments) {
            is_running = is_running || each->is_running_;
        }
        fMfe->put(fMfe->fStateRunning, is_running);
    }

    int end() {
        fMfe->StopRpcThread();
        end_runs();
        HandleFrontendExit();
        say_why();
        FeDeleteEquipments();
        const int signal = weir::adapter::Interrupt::came();
        return signal != 0 ? 128 + signal : has_failed_ ? 1 : 0;
    }

    void end_runs() {
        fMfe->obeys_ = std::this_thread::get_id();
        for (TMFeEquipment *equipment : fFeEquipments) {
            end_run(*equipment);
            equipment->EqStopPollThread();
        }
        if (first() != nullptr) {
            tell_others({WEIR_END, 0});
        }
    }

    void say_why() const {
        for (const TMFeEquipment *equipment : fFeEquipments) {
            if (equipment->session_ != nullptr && !equipment->session_->why().empty()) {
                std::fprintf(stderr, "weir: source %s: %s\n", equipment->fEqName.c_str(), equipment->session_->why().c_str());
            }
        }
    }

    /// Ends the links of equipments that the program owns.
    void leave() {
        end_runs();
        say_why();
        {
            const std::lock_guard<std::mutex> lock(fMfe->mutex_);
            fMfe->session_ = nullptr;
        }
        for (TMFeEquipment *equipment : fFeEquipments) {
            equipment->session_.reset();
        }
        fFeEquipments.clear();
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
        inside(equipment.fEqName, function, [&] { weir::adapter::guarded(session_of(equipment), equipment.fEqName, function, call); });
    }

    /// Notes where the thread is that takes orders: the partition waits for no other one.
    template <typename Call> void inside(const std::string &whose, const char *function, Call call) const {
        if (fMfe->obeys_.load() != std::this_thread::get_id()) {
            return call();
        }
        const weir::adapter::Inside inside(whose, function);
        call();
    }

    /// Calls a handler that says how it went.
    template <typename Call>
    void check(const char *function, const std::string &whose, Call call, weir::adapter::Session *session = nullptr) {
        const auto well = [&] {
            const TMFeResult result = call();
            if (result.error_flag) {
                throw std::runtime_error(result.error_message);
            }
        };
        inside(whose, function, [&] { weir::adapter::guarded(session, whose, function, well); });
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
    /// Whether handlers that are no equipments were told that a run has begun.
    bool is_told_ = false;
};

inline TMFeResult TMFE::Connect(const char *program, const char *, const char *experiment) {
    weir::adapter::Interrupt::expect();
    fProgramName = program == nullptr ? fProgramName : program;
    fExptname = experiment == nullptr ? "" : experiment;
    frontend_ = &TMFrontend::of_main();
    if (const char *const places = std::getenv("MIDAS_SERVER_HOST"); places != nullptr && *places != '\0') {
        frontend_->place_all(places);
    }
    if (const char *const key = std::getenv("WEIR_KEY_FILE"); key != nullptr) {
        frontend_->settings_.key_file = key;
    }
    return TMFeOk();
}

inline TMFeResult TMFE::Disconnect() {
    StopRpcThread();
    if (frontend_ != nullptr) {
        frontend_->leave();
    }
    return TMFeOk();
}

inline void TMFE::StartRpcThread() {
    if (!rpc_runs_.exchange(true)) {
        rpc_thread_ = std::thread([this] {
            while (rpc_runs_) {
                if (frontend_ != nullptr) {
                    frontend_->take_orders();
                }
                std::this_thread::sleep_for(TMFrontend::STEP_AT_MOST);
            }
        });
    }
}

inline void TMFE::Yield(double seconds) {
    const double until = GetTime() + seconds;
    do {
        if (frontend_ != nullptr && !rpc_runs_) {
            frontend_->take_orders();
        }
        std::this_thread::sleep_for(std::chrono::duration<double>(std::max(0.0, std::min(until - GetTime(), YIELD_STEP))));
    } while (GetTime() < until && !is_over());
}

inline TMFeResult TMFeEquipment::EqInit(const std::vector<std::string> &arguments) {
    return TMFrontend::of_main().init(*this, arguments);
}

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
                TMFE::Sleep(fEqConfPollSleepSec);
            }
        }
    });
}

#endif
