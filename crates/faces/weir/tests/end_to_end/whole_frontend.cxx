// A front end that uses what front ends of MIDAS use, in both forms: with FeMain(), and with a main() of its own that connects.
// The second one is what runs where MIDAS_SERVER_HOST is set.
#include "tmfe.h"

class EqWhole : public TMFeEquipment {
public:
    EqWhole(const char *name, const char *file) : TMFeEquipment(name, file) {
        fEqConfEventID = 5;
        fEqConfPeriodMilliSec = 1;
        fEqConfLogHistory = 1;
        fEqConfBuffer = "SYSTEM";
        fEqConfWriteEventsToOdb = true;
        fEqConfEnablePoll = true;
        fEqConfPollSleepSec = 0;
    }

    TMFeResult HandleInit(const std::vector<std::string> &) override {
        fMfe->RegisterTransitionStartAbort();
        fMfe->DeregisterTransitionPause();
        fMfe->DeregisterTransitionResume();
        fMfe->SetTransitionSequenceStart(910);
        fMfe->SetTransitionSequenceStop(90);
        fEqConfReadOnlyWhenRunning = false;
        EqSetStatus("Started", "white");
        return TMFeOk();
    }

    TMFeResult HandleRpc(const char *order, const char *arguments, std::string &answer) override {
        fMfe->Msg(MINFO, "HandleRpc", "order [%s], arguments [%s]", order, arguments);
        answer = TMFE::GetThreadId();
        return TMFeOk();
    }

    TMFeResult HandleBeginRun(int run) override {
        const std::lock_guard<std::mutex> lock(fEqMutex);
        fMfe->Msg(MINFO, "HandleBeginRun", "run %d is run %d", run, fMfe->fRunNumber);
        EqZeroStatistics();
        left_ = EVENTS;
        return TMFeOk();
    }

    TMFeResult HandleEndRun(int run) override {
        fMfe->Msg(MINFO, "HandleEndRun", "run %d", run);
        EqWriteStatistics();
        return TMFeOk();
    }

    TMFeResult HandlePauseRun(int) override { return TMFeOk(); }
    TMFeResult HandleResumeRun(int) override { return TMFeOk(); }
    TMFeResult HandleStartAbortRun(int) override { return TMFeOk(); }

    void HandlePeriodic() override {
        const double value = TMFE::GetTime();
        fOdbEqVariables->WD("value", value);
        fOdbEqVariables->WDA("values", {value, value});
        char status[64];
        snprintf(status, sizeof(status), "value %.1f, run %d", value, fMfe->fRunNumber);
        EqSetStatus(status, "#00FF00");
    }

    bool HandlePoll() override { return fMfe->fStateRunning && left_ > 0; }

    void HandlePollRead() override {
        char event[256];
        ComposeEvent(event, sizeof(event));
        BkInit(event, sizeof(event));
        uint32_t *data = static_cast<uint32_t *>(BkOpen(event, "LEFT", TID_UINT32));
        *data++ = static_cast<uint32_t>(left_);
        BkClose(event, data);
        const int size = static_cast<int>(sizeof(EVENT_HEADER)) + BkSize(event);
        const TMFeResult sent = send(event, static_cast<size_t>(size));
        if (sent.error_flag) {
            fMfe->Msg(MERROR, "HandlePollRead", "%s", sent.error_message.c_str());
        }
        left_--;
    }

    static constexpr int EVENTS = 40;

private:
    /// In one of the four ways, by turns.
    TMFeResult send(const char *event, size_t size) {
        const char *pieces[] = {event, event + 20};
        const size_t sizes[] = {20, size - 20};
        switch (left_ % 4) {
        case 0:
            return EqSendEvent(event, false);
        case 1:
            return EqSendEvent(std::vector<char>(event, event + size));
        case 2:
            return EqSendEvent(std::vector<std::vector<char>>{{event, event + 20}, {event + 20, event + size}});
        default:
            return EqSendEvent(2, pieces, sizes, false);
        }
    }

    std::atomic<int> left_{0};
};

class Told : public TMFeRpcHandlerInterface {
public:
    TMFeResult HandleBeginRun(int run) override {
        TMFE::Instance()->Msg(MINFO, "Told", "of run %d", run);
        return TMFeOk();
    }

    TMFeResult HandleEndRun(int run) override {
        TMFE::Instance()->Msg(MINFO, "Told", "of the end of run %d", run);
        return TMFeOk();
    }
};

class FeWhole : public TMFrontend {
public:
    FeWhole() {
        FeSetName("whole");
        FeAddEquipment(new EqWhole("whole", __FILE__));
    }

    TMFeResult HandleArguments(const std::vector<std::string> &) override { return TMFeOk(); }
    TMFeResult HandleFrontendInit(const std::vector<std::string> &) override { return TMFeOk(); }

    TMFeResult HandleFrontendReady(const std::vector<std::string> &) override {
        fMfe->AddRpcHandler(&told_);
        fMfe->StartRpcThread();
        return TMFeOk();
    }

    void HandleFrontendExit() override { fMfe->RemoveRpcHandler(&told_); }

private:
    Told told_;
};

/// It polls by itself, and takes orders in between.
static int without_front_end() {
    TMFE *mfe = TMFE::Instance();
    TMFeResult result = mfe->Connect("whole", __FILE__);
    if (result.error_flag) {
        fprintf(stderr, "%s\n", result.error_message.c_str());
        return 1;
    }
    mfe->SetWatchdogSec(0);
    EqWhole equipment("whole", __FILE__);
    Told told;
    result = equipment.EqInit({});
    equipment.EqSetStatus("Starting", "white");
    mfe->AddRpcHandler(&equipment);
    mfe->AddRpcHandler(&told);
    mfe->RegisterRPCs();
    while (!mfe->fShutdownRequested) {
        mfe->Yield(0.001);
        while (equipment.HandlePoll()) {
            equipment.HandlePollRead();
        }
    }
    mfe->Disconnect();
    return result.error_flag ? 1 : 0;
}

int main(int argc, char *argv[]) {
    if (getenv("MIDAS_SERVER_HOST") != nullptr) {
        return without_front_end();
    }
    FeWhole frontend;
    return frontend.FeMain(argc, argv);
}
