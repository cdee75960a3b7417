// A pixel sensor behind EUDAQ's interface of producers. It knows nothing of Weir, and makes up its hits.
//
//   make -C examples/adapters && examples/adapters/pixel -t device -s EVENTS=10000
#include <chrono>
#include <thread>

#include "eudaq/Producer.hh"

class PixelProducer : public eudaq::Producer {
public:
    PixelProducer(const std::string &name, const std::string &runcontrol) : eudaq::Producer(name, runcontrol) {}

    void DoInitialise() override { plane_ = GetInitConfiguration()->Get("PLANE", 3); }

    void DoConfigure() override {
        auto conf = GetConfiguration();
        events_ = conf->Get("EVENTS", 10000u);
        busy_ = std::chrono::microseconds(conf->Get("BUSY_US", 0));
        if (events_ == 0) {
            EUDAQ_THROW("EVENTS is 0: expected a number of events");
        }
        EUDAQ_INFO("plane " + std::to_string(plane_) + " is configured");
    }

    void DoStartRun() override { is_running_ = true; }
    void DoStopRun() override { is_running_ = false; }
    void DoTerminate() override { EUDAQ_INFO("the sensor is off"); }

    void RunLoop() override {
        const auto begun = std::chrono::steady_clock::now();
        for (uint32_t trigger = 0; is_running_ && trigger < events_; trigger++) {
            auto event = eudaq::Event::MakeUnique("PixelRaw");
            const auto since = std::chrono::steady_clock::now() - begun;
            const auto time = static_cast<uint64_t>(std::chrono::nanoseconds(since).count());
            event->SetTriggerN(trigger);
            event->SetTimestamp(time, time + 100);
            event->SetTag("Plane ID", plane_);
            event->AddBlock(plane_, hits(trigger));
            SendEvent(std::move(event));
            std::this_thread::sleep_for(busy_);
        }
        SetStatusMsg("no more triggers");
    }

private:
    /// Your sensor: pairs of column and row.
    static std::vector<uint16_t> hits(uint32_t trigger) {
        std::vector<uint16_t> hits;
        for (uint32_t hit = 0; hit < trigger % 7; hit++) {
            hits.push_back(static_cast<uint16_t>(trigger * 13 + hit));
            hits.push_back(static_cast<uint16_t>(trigger + hit * 5));
        }
        return hits;
    }

    uint32_t plane_ = 0, events_ = 0;
    std::chrono::microseconds busy_{0};
    std::atomic<bool> is_running_{false};
};

namespace {
auto registered = eudaq::Factory<eudaq::Producer>::Register<PixelProducer, const std::string &, const std::string &>(
    eudaq::cstr2hash("PixelProducer"));
}
