// The read-out of a detector in C++: five functions of a class, which the library calls.
//
//   make -C examples/detector && examples/detector/detector-cpp shm:telescope
#include <iostream>
#include <weir.hpp>

class Telescope : public weir::Source {
public:
    void configure(const weir_settings &settings) override {
        shortest_ = std::stoul(weir::parameter("shortest", "500"));
        std::cerr << settings.name << " is configured\n";
    }

    void start(std::uint32_t run) override {
        std::cerr << "run " << run << " begins\n";
        number_ = 0;
        armed_ = true;
    }

    // Your device; this one makes up its data.
    std::optional<weir::Fragment> read(std::uint8_t *slot, std::size_t size) override {
        if (!armed_) {
            return std::nullopt;
        }
        const std::size_t len = shortest_ + number_ * 7 % 1500;
        if (len > size) {
            throw std::length_error("source.size_max is too small");
        }
        for (std::size_t i = 0; i < len; i++) {
            slot[i] = static_cast<std::uint8_t>(number_ * 3 + i);
        }
        return weir::Fragment{weir::numbered(number_++), len};
    }

    void stop() override { armed_ = false; }

    std::string status() override { return "event " + std::to_string(number_); }

private:
    std::size_t shortest_ = 0;    // --set shortest=BYTES
    std::uint64_t number_ = 0;
    bool armed_ = false;
};

int main(int argc, char **argv) {
    weir::Settings settings;
    settings.name = "telescope";
    Telescope telescope;
    try {
        const std::string at = settings.take(argc, argv);
        weir::run(at, settings, telescope);
    } catch (const std::exception &error) {
        std::cerr << "telescope: " << error.what() << '\n';
        return 1;
    }
    return 0;
}
