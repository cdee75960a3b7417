// A digitiser that is polled, and a temperature that is read now and then, behind the interface of MIDAS's C++ front ends. The program
// knows nothing of Weir, and makes up its samples.
//
//   make -C examples/adapters && examples/adapters/adc -h adc=shm:telescope -s /Equipment/adc/Settings/samples=32
#include <vector>

#include "midas.h"
#include "tmfe.h"

class EqAdc : public TMFeEquipment {
public:
    EqAdc(const char *name, const char *file) : TMFeEquipment(name, file) {
        fEqConfEventID = 1;
        fEqConfEnablePoll = true;
        fEqConfEnablePeriodic = false;
    }

    TMFeResult HandleInit(const std::vector<std::string> &) override {
        fOdbEqSettings->RI("samples", &samples_, true);
        if (samples_ < 1 || samples_ > 1000) {
            return TMFeErrorMessage("samples: expected 1 to 1000");
        }
        return TMFeOk();
    }

    TMFeResult HandleBeginRun(int run) override {
        fMfe->Msg(MINFO, "HandleBeginRun", "run %d", run);
        trigger_ = 0;
        return TMFeOk();
    }

    bool HandlePoll() override { return true; }    // your device: is there a trigger?

    void HandlePollRead() override {
        std::vector<char> event(200 + 2 * static_cast<size_t>(samples_));
        ComposeEvent(event.data(), event.size());
        BkInit(event.data(), event.size());
        auto *number = static_cast<DWORD *>(BkOpen(event.data(), "TRIG", TID_DWORD));
        *number++ = trigger_;
        BkClose(event.data(), number);
        auto *sample = static_cast<WORD *>(BkOpen(event.data(), "ADC0", TID_WORD));
        for (int at = 0; at < samples_; at++) {
            *sample++ = static_cast<WORD>(trigger_ * 3 + static_cast<DWORD>(at * at));
        }
        BkClose(event.data(), sample);
        EqSendEvent(event.data());
        trigger_++;
    }

private:
    int samples_ = 16;
    DWORD trigger_ = 0;
};

class EqTemperature : public TMFeEquipment {
public:
    EqTemperature(const char *name, const char *file) : TMFeEquipment(name, file) { fEqConfPeriodMilliSec = 100; }

    void HandlePeriodic() override {
        fOdbEqVariables->WD("TEMP", 20.5);
        EqSetStatus("Ok", "#00FF00");
    }
};

class FeAdc : public TMFrontend {
public:
    FeAdc() {
        FeSetName("adc");
        FeAddEquipment(new EqAdc("adc", __FILE__));
        FeAddEquipment(new EqTemperature("temperature", __FILE__));
    }
};

int main(int argc, char *argv[]) {
    FeAdc frontend;
    return frontend.FeMain(argc, argv);
}
