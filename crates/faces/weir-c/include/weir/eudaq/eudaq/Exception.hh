// An adapter of Weir: it declares names of EUDAQ's public interface, and holds no code of EUDAQ. See docs/adapters.md.
#ifndef WEIR_EUDAQ_EXCEPTION_HH
#define WEIR_EUDAQ_EXCEPTION_HH

#include <stdexcept>
#include <string>

namespace eudaq {

/// What went wrong; from a function of a producer it ends the source, and run control is told.
class Exception : public std::runtime_error {
public:
    explicit Exception(const std::string &text) : std::runtime_error(text) {}
};

}  // namespace eudaq

#define EUDAQ_THROW(text) throw ::eudaq::Exception(text)

#endif
