// An adapter of Weir: it declares names of EUDAQ's public interface, and holds no code of EUDAQ. See docs/adapters.md.
#ifndef WEIR_EUDAQ_RAWDATAEVENT_HH
#define WEIR_EUDAQ_RAWDATAEVENT_HH

#include "eudaq/Event.hh"

namespace eudaq {

/// An event of raw blocks, by the names of EUDAQ's manual of version 1 and 2.0.
class RawDataEvent : public Event {
public:
    RawDataEvent(const std::string &type, std::uint32_t run, std::uint32_t event) {
        SetDescription(type);
        SetRunN(run);
        SetEventN(event);
    }

    static RawDataEvent BORE(const std::string &type, std::uint32_t run) {
        RawDataEvent event(type, run, 0);
        event.SetBORE();
        return event;
    }

    static RawDataEvent EORE(const std::string &type, std::uint32_t run, std::uint32_t number) {
        RawDataEvent event(type, run, number);
        event.SetEORE();
        return event;
    }
};

}  // namespace eudaq

#endif
