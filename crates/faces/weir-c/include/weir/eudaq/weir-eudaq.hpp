// weir-eudaq.hpp: runs a producer that is written against eudaq/Producer.hh as a source of Weir. Manual: docs/adapters.md.
#ifndef WEIR_EUDAQ_HPP
#define WEIR_EUDAQ_HPP

#include <fstream>
#include <iostream>

#include "eudaq/Producer.hh"

namespace weir::eudaq_adapter {

class Program {
public:
    /// Throws std::invalid_argument for what is no option, and eudaq::Exception for a file that cannot be read.
    explicit Program(adapter::Arguments arguments) {
        std::vector<std::pair<std::string, std::string>> set;
        std::string initial, configuration;
        while (arguments.next()) {
            const std::string option = arguments.option();
            if (option == "-n") {
                class_ = arguments.value();
            } else if (option == "-t") {
                settings_.name = arguments.value();
            } else if (option == "-r") {
                at_ = arguments.value();
            } else if (option == "-i") {
                initial = arguments.value();
            } else if (option == "-c") {
                configuration = arguments.value();
            } else if (option == "-s") {
                set.push_back(arguments.assignment());
            } else if (!arguments.takes(settings_)) {
                arguments.refuse();
            }
        }
        make();
        producer_->initial_ = read(initial, set);
        producer_->configuration_ = read(configuration, set);
    }

    /// Through all runs of the partition; gives the exit status.
    int run() {
        call("DoInitialise", &eudaq::Producer::DoInitialise, eudaq::Status::STATE_UNCONF);
        call("DoConfigure", &eudaq::Producer::DoConfigure, eudaq::Status::STATE_CONF);
        adapter::Session session(at_, settings_);
        session_ = &session;
        producer_->session_ = &session;
        adapter::Interrupt::expect();
        eudaq::Log::tell([&session](const std::string &text) { session.say(text); });
        adapter::Order order;
        do {
            order = session.next_order(STATUS_EVERY);
            obey(order);
        } while (order.kind != WEIR_END && order.kind != WEIR_ERROR);
        eudaq::Log::tell([](const std::string &) {});
        producer_->session_ = nullptr;
        const std::string why = session.why();
        if (!why.empty()) {
            std::cerr << "weir: source " << settings_.name << ": " << why << '\n';
        }
        const int signal = adapter::Interrupt::came();
        return signal != 0 ? 128 + signal : order.kind == WEIR_ERROR ? 1 : 0;
    }

    static const char *usage() {
        return "  -n CLASS          the producer, if the program has several\n"
               "  -t NAME           name of the source in the configuration of the partition; otherwise that of the class\n"
               "  -r ADDRESS        where the partition listens: shm:NAME or tcp://HOST:PORT; otherwise shm:NAME, with this name\n"
               "  -i FILE           configuration for DoInitialise: its section [Producer.NAME]\n"
               "  -c FILE           configuration for DoConfigure: its section [Producer.NAME]\n"
               "  -s NAME=VALUE     a value of both\n";
    }

private:
    static constexpr std::chrono::seconds STATUS_EVERY{1};

    using Function = void (eudaq::Producer::*)();

    void make() {
        const auto &classes = eudaq::Factory<eudaq::Producer>::classes();
        const auto found = class_.empty() && classes.size() == 1 ? classes.begin() : classes.find(eudaq::str2hash(class_));
        if (found == classes.end()) {
            throw std::invalid_argument(classes.empty() ? "no producer is registered: expected eudaq::Factory<eudaq::Producer>::Register"
                                        : class_.empty() ? "the program has several producers: expected -n CLASS"
                                                         : "-n " + class_ + ": no producer is registered as cstr2hash(\"" + class_ + "\")");
        }
        if (settings_.name.empty()) {
            settings_.name = class_;
        }
        if (settings_.name.empty()) {
            throw std::invalid_argument("expected -t NAME, the name of the source in the configuration of the partition");
        }
        if (at_.empty()) {
            at_ = "shm:" + settings_.name;
        }
        producer_ = found->second(settings_.name, at_);
    }

    /// The section of this producer, if there is such a file.
    eudaq::ConfigurationSPC read(const std::string &file, const std::vector<std::pair<std::string, std::string>> &set) const {
        const std::string section = "Producer." + settings_.name;
        auto configuration = std::make_shared<eudaq::Configuration>("", section);
        if (!file.empty()) {
            std::ifstream text(file);
            if (!text) {
                EUDAQ_THROW(file + ": cannot be read");
            }
            try {
                configuration->Load(text, section);
            } catch (const eudaq::Exception &error) {
                EUDAQ_THROW(file + ", " + error.what());
            }
            if (!configuration->HasSection(section)) {
                std::cerr << "weir: source " << settings_.name << ": " << file << " has no section [" << section << "]\n";
            }
        }
        for (const auto &[name, value] : set) {
            configuration->Set(name, value);
        }
        return configuration;
    }

    void obey(const adapter::Order &order) {
        switch (order.kind) {
        case WEIR_START:
            producer_->run_ = order.run;
            producer_->sent_ = 0;
            call("DoStartRun", &eudaq::Producer::DoStartRun, eudaq::Status::STATE_RUNNING);
            loop_ = std::thread([this] { adapter::guarded(session_, settings_.name, "RunLoop", [this] { producer_->RunLoop(); }); });
            session_->done();
            break;
        case WEIR_STOP:
            stop();
            session_->done();
            break;
        case WEIR_END:
        case WEIR_ERROR:
            stop();
            call("DoTerminate", &eudaq::Producer::DoTerminate, eudaq::Status::STATE_UNINIT);
            session_->done();
            break;
        case WEIR_NOTHING:
            call("DoStatus", &eudaq::Producer::DoStatus, producer_->state_);
        }
    }

    void stop() {
        if (loop_.joinable()) {
            call("DoStopRun", &eudaq::Producer::DoStopRun, eudaq::Status::STATE_STOPPED);
            const adapter::Inside inside(settings_.name, "RunLoop");
            loop_.join();
        }
        const std::uint64_t dropped = session_->end();
        if (dropped > 0) {
            EUDAQ_WARN(std::to_string(dropped) + " events were dropped: sent outside of a run, or at its end to a busy partition");
        }
    }

    void call(const char *name, Function function, eudaq::Status::State then) {
        const adapter::Inside inside(settings_.name, name);
        adapter::guarded(session_, settings_.name, name, [this, function] { (producer_.get()->*function)(); });
        // A producer that says of itself that it has failed stays so.
        if (producer_->state_ != eudaq::Status::STATE_ERROR) {
            producer_->state_ = then;
        }
    }

    std::string class_, at_;
    Settings settings_;
    eudaq::ProducerUP producer_;
    adapter::Session *session_ = nullptr;
    std::thread loop_;
};

/// The program of a producer: runs the one that is registered.
inline int main(int argc, char **argv) {
    const std::string program = argc > 0 ? argv[0] : "producer";
    for (int at = 1; at < argc; at++) {
        if (std::string(argv[at]) == "--help" || std::string(argv[at]) == "-h") {
            std::cout << "usage: " << program << " [options]\n" << Program::usage() << adapter::Arguments::COMMON_USAGE;
            return 0;
        }
    }
    try {
        return Program(adapter::Arguments(argc, argv)).run();
    } catch (const std::exception &error) {
        std::cerr << program << ": " << error.what() << '\n';
        return 1;
    }
}

}  // namespace weir::eudaq_adapter

#endif
