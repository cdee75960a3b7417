// An adapter of Weir: it declares names of EUDAQ's public interface, and holds no code of EUDAQ. See docs/adapters.md.
#ifndef WEIR_EUDAQ_FACTORY_HH
#define WEIR_EUDAQ_FACTORY_HH

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>

namespace eudaq {

/// Makes objects of registered classes, each by the identifier of its name.
template <typename Base> class Factory {
public:
    using Make = std::function<std::unique_ptr<Base>(const std::string &, const std::string &)>;

    /// What Register() gives: for a variable that is there for the registration alone.
    struct Registered {
        ~Registered() {}
        std::uint32_t id;
    };

    template <typename Derived, typename... Arguments> static Registered Register(std::uint32_t id) {
        static_assert(std::is_base_of_v<Base, Derived>, "a class is registered for its base");
        static_assert(std::is_constructible_v<Derived, const std::string &, const std::string &>,
                      "the adapter makes producers of a name and the address of run control");
        classes()[id] = [](const std::string &name, const std::string &at) { return std::make_unique<Derived>(name, at); };
        return {id};
    }

    static std::map<std::uint32_t, Make> &classes() {
        static std::map<std::uint32_t, Make> classes;
        return classes;
    }
};

}  // namespace eudaq

#endif
