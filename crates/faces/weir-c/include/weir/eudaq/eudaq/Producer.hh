// An adapter of Weir: it declares names of EUDAQ's public interface, and holds no code of EUDAQ. See docs/adapters.md.
#ifndef WEIR_EUDAQ_PRODUCER_HH
#define WEIR_EUDAQ_PRODUCER_HH

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "../../adapter.hpp"
#include "eudaq/Configuration.hh"
#include "eudaq/Event.hh"
#include "eudaq/Exception.hh"
#include "eudaq/Factory.hh"
#include "eudaq/Logger.hh"
#include "eudaq/RawDataEvent.hh"
#include "eudaq/Utils.hh"

namespace weir::eudaq_adapter {
class Program;
}

namespace eudaq {

/// How a component is.
class Status {
public:
    enum State { STATE_ERROR, STATE_UNINIT, STATE_UNCONF, STATE_CONF, STATE_STOPPED, STATE_RUNNING };
};

/// A source of Weir: derive from it, and register the class with Factory.
class Producer {
public:
    Producer(const std::string &name, const std::string &runcontrol) : name_(name), runcontrol_(runcontrol) {}
    virtual ~Producer() = default;
    Producer(const Producer &) = delete;
    Producer &operator=(const Producer &) = delete;

    virtual void DoInitialise() {}
    virtual void DoConfigure() {}
    virtual void DoStartRun() {}
    virtual void DoStopRun() {}
    virtual void DoReset() {}
    virtual void DoTerminate() {}
    virtual void DoStatus() {}
    virtual void RunLoop() {}

    /// Sends an event as a fragment, from any thread. Waits while the partition is busy. Without a run the event is dropped, and counted.
    /// Throws Exception if it is longer than the partition takes.
    void SendEvent(EventSP event) {
        if (!event) {
            EUDAQ_THROW("SendEvent: there is no event");
        }
        send(*event);
    }

    void SendEvent(const Event &event) {
        Event copy(event);
        send(copy);
    }

    ConfigurationSPC GetInitConfiguration() const { return initial_; }
    ConfigurationSPC GetConfiguration() const { return configuration_; }
    std::string GetName() const { return name_; }
    std::string GetFullName() const { return "Producer." + name_; }
    std::string GetCommandReceiverAddress() const { return runcontrol_; }
    std::uint32_t GetRunNumber() const { return run_; }
    std::uint32_t GetDeviceN() const { return device_; }
    void SetDeviceN(std::uint32_t device) { device_ = device; }

    void SetStatusMsg(const std::string &text) {
        const std::lock_guard<std::mutex> lock(status_);
        message_ = text;
        say();
    }

    template <typename T> void SetStatusTag(const std::string &name, const T &value) {
        const std::lock_guard<std::mutex> lock(status_);
        tags_[name] = to_string(value);
        say();
    }

    void SetStatus(Status::State state, const std::string &text) {
        state_ = state;
        SetStatusMsg(state == Status::STATE_ERROR ? "ERROR: " + text : text);
    }

    bool IsStatus(Status::State state) const { return state_ == state; }

private:
    friend class weir::eudaq_adapter::Program;

    // Version 1 called these. A producer that defines one does not compile: otherwise nothing would call it.
    virtual void OnInitialise(const Configuration &) final {}
    virtual void OnConfigure(const Configuration &) final {}
    virtual void OnStartRun(unsigned) final {}

    void send(Event &event) {
        const bool says_nothing_of_a_trigger = (event.IsBORE() || event.IsEORE()) && event.NumBlocks() == 0 && !event.IsFlagTrigger();
        weir::adapter::Session *const session = session_;
        if (session == nullptr || says_nothing_of_a_trigger) {
            return;
        }
        // Numbers rise, whoever sends.
        const std::lock_guard<std::mutex> lock(sending_);
        event.SetRunN(run_);
        event.SetStreamN(device_);
        const std::uint32_t count = sent_++;
        if (!Travelling::has_number(event)) {
            event.SetEventN(count);
        }
        weir_head head = weir::numbered(event.IsFlagTrigger() ? event.GetTriggerN() : event.GetEventN());
        if (event.IsFlagTimestamp()) {
            head.begin = event.GetTimestampBegin();
            head.end = event.GetTimestampEnd();
            head.flags |= WEIR_HAS_TIME;
        }
        try {
            session->send(head, Travelling::length(event), [&event](std::uint8_t *slot) { Travelling::write(event, slot); });
        } catch (const weir::Error &error) {
            EUDAQ_THROW(std::string("SendEvent: ") + error.what() + ": see source.size_max");
        }
    }

    void say() {
        std::string text = message_;
        for (const auto &[name, value] : tags_) {
            text += (text.empty() ? "" : ", ") + name + " " + value;
        }
        weir::adapter::Session *const session = session_;
        if (session != nullptr && !text.empty()) {
            session->say(text);
        }
    }

    const std::string name_, runcontrol_;
    ConfigurationSPC initial_ = std::make_shared<Configuration>(), configuration_ = initial_;
    std::atomic<weir::adapter::Session *> session_{nullptr};
    std::atomic<std::uint32_t> run_{0}, device_{0}, sent_{0};
    std::atomic<Status::State> state_{Status::STATE_UNINIT};
    std::mutex sending_, status_;
    std::string message_;
    std::map<std::string, std::string> tags_;
};

using ProducerUP = std::unique_ptr<Producer>;
using ProducerSP = std::shared_ptr<Producer>;

}  // namespace eudaq

#endif
