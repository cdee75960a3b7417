// An adapter of Weir: it declares names of EUDAQ's public interface, and holds no code of EUDAQ. See docs/adapters.md.
#ifndef WEIR_EUDAQ_UTILS_HH
#define WEIR_EUDAQ_UTILS_HH

#include <chrono>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>

#include "eudaq/Exception.hh"

namespace eudaq {

/// The identifier of a name (FNV-1a of 32 bits), also at compile time.
constexpr std::uint32_t cstr2hash(const char *name) {
    std::uint32_t hash = 0x811c9dc5u;
    for (; *name != '\0'; name++) {
        hash = (hash ^ static_cast<unsigned char>(*name)) * 0x01000193u;
    }
    return hash;
}

inline std::uint32_t str2hash(const std::string &name) { return cstr2hash(name.c_str()); }

inline void mSleep(unsigned milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

template <typename T> std::string to_string(const T &value) {
    std::ostringstream text;
    text << value;
    return text.str();
}

/// A value from its text: whole numbers also as 0x…, of any width; bool also as true and false. Throws Exception.
template <typename T> T from_string(const std::string &text, const T &absent = T()) {
    const auto refuse = [&text](const char *expected) -> Exception { return Exception("\"" + text + "\": expected " + expected); };
    if (text.empty()) {
        return absent;
    }
    std::size_t used = 0;
    T value{};
    try {
        if constexpr (std::is_same_v<T, std::string>) {
            return text;
        } else if constexpr (std::is_same_v<T, bool>) {
            return text == "true" ? true : text == "false" ? false : from_string<long long>(text) != 0;
        } else if constexpr (std::is_floating_point_v<T>) {
            value = static_cast<T>(std::stold(text, &used));
        } else if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>) {
            const auto wide = std::stoull(text, &used, 0);
            value = static_cast<T>(wide);
            if (text.find('-') != std::string::npos || wide > std::numeric_limits<T>::max()) {
                throw std::out_of_range(text);
            }
        } else if constexpr (std::is_integral_v<T>) {
            const auto wide = std::stoll(text, &used, 0);
            value = static_cast<T>(wide);
            if (wide < std::numeric_limits<T>::min() || wide > std::numeric_limits<T>::max()) {
                throw std::out_of_range(text);
            }
        } else {
            std::istringstream stream(text);
            used = stream >> value ? text.size() : 0;
        }
    } catch (const std::out_of_range &) {
        throw refuse("a number that its type can hold");
    } catch (const std::invalid_argument &) {
        throw refuse("a number");
    }
    if (used != text.size()) {
        throw refuse("one value and nothing behind it");
    }
    return value;
}

}  // namespace eudaq

#endif
