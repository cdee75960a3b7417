// A front end whose equipment hangs, fails or polls in a thread of its own, as the setting `how` says.
#include "midas.h"
#include "tmfe.h"

class EqOdd : public TMFeEquipment {
public:
    using TMFeEquipment::TMFeEquipment;

    TMFeResult HandleInit(const std::vector<std::string> &arguments) override {
        fOdbEqSettings->RS("how", &how_, true);
        std::vector<int> channels;
        fOdbEqSettings->RIA("channels", &channels, true, 3);
        fEqConfEnablePoll = true;
        fEqConfEventID = 7;
        if (how_ == "polls in a thread") {
            EqStartPollThread();
        }
        if (how_ == "says what it was told") {
            return TMFeErrorMessage(std::to_string(channels.size()) + " channels, " + std::to_string(arguments.size()) + " arguments");
        }
        return TMFeOk();
    }

    TMFeResult HandleBeginRun(int run) override {
        left_ = 100 * run;
        return how_ == "fails in HandleBeginRun" ? TMFeErrorMessage("no such device") : TMFeOk();
    }

    TMFeResult HandleEndRun(int) override {
        while (how_ == "hangs in HandleEndRun") {
            TMFE::Sleep(0.01);
        }
        return TMFeOk();
    }

    bool HandlePoll() override { return left_ > 0; }

    void HandlePollRead() override {
        std::vector<char> event(64);
        ComposeEvent(event.data(), event.size());
        BkInit(event.data(), event.size());
        auto *left = static_cast<DWORD *>(BkOpen(event.data(), "LEFT", TID_UINT32));
        *left++ = static_cast<DWORD>(left_--);
        BkClose(event.data(), left);
        EqSendEvent(event);
        while (how_ == "hangs in HandlePoll") {
            TMFE::Sleep(0.01);
        }
    }

private:
    std::string how_ = "well";
    std::atomic<int> left_{0};
};

class FeOdd : public TMFrontend {
public:
    FeOdd() {
        FeSetName("odd");
        FeAddEquipment(new EqOdd("odd_%02d", __FILE__));
    }
};

int main(int argc, char *argv[]) {
    FeOdd frontend;
    return frontend.FeMain(argc, argv);
}
