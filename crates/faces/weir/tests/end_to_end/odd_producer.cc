// A producer that hangs, throws or sends from threads of its own, as HOW says.
#include <thread>

#include "eudaq/Producer.hh"

class OddProducer : public eudaq::Producer {
public:
    using eudaq::Producer::Producer;

    void DoConfigure() override {
        how_ = GetConfiguration()->Get("HOW", "");
        when("throws in DoConfigure");
    }

    void DoStartRun() override {
        is_running_ = true;
        when("hangs in DoStartRun");
        if (how_ == "sends from a thread") {
            // Also before the run and behind its end.
            sender_ = std::thread([this] { send_all(500); });
        }
        auto begin = eudaq::RawDataEvent::BORE("ODD", GetRunNumber());
        begin.SetTag("plane", 3);
        SendEvent(begin);
    }

    void DoStopRun() override {
        when("hangs in DoStopRun");
        is_running_ = false;
        if (sender_.joinable()) {
            sender_.join();
        }
        SendEvent(eudaq::RawDataEvent::EORE("ODD", GetRunNumber(), 0));
    }

    void RunLoop() override {
        SetStatusTag("plane", 3);
        send_all(10);
        if (how_ == "is too long") {
            auto event = eudaq::Event::MakeShared("ODD");
            event->AddBlock(0, std::vector<uint8_t>(5000));
            SendEvent(event);
        }
        when("throws in RunLoop");
        when("hangs in RunLoop");
    }

    void DoTerminate() override { EUDAQ_USER("terminated"); }

private:
    void send_all(int events) {
        for (int number = 0; is_running_ && number < events; number++) {
            auto event = eudaq::Event::MakeUnique("ODD");
            event->AddBlock(7, std::vector<uint32_t>{1, 2, static_cast<uint32_t>(number)});
            SendEvent(std::move(event));
        }
    }

    void when(const std::string &how) {
        if (how != how_) {
            return;
        }
        if (how.rfind("throws", 0) == 0) {
            EUDAQ_THROW("no such device");
        }
        while (true) {
            eudaq::mSleep(10);
        }
    }

    std::string how_;
    std::atomic<bool> is_running_{false};
    std::thread sender_;
};

namespace {
auto registered = eudaq::Factory<eudaq::Producer>::Register<OddProducer, const std::string &, const std::string &>(eudaq::cstr2hash("OddProducer"));
}
