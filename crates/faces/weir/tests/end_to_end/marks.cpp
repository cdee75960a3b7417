// The same as marks.c, as a class.
#include <iostream>
#include <weir.hpp>

class Marks : public weir::Source {
public:
    void configure(const weir_settings &) override { first_ = std::stoull(weir::parameter("first", "0")); }

    std::optional<weir::Fragment> read(std::uint8_t *, std::size_t) override {
        switch (step_++) {
        case 0:
            return weir::Fragment{weir::numbered(first_), 0};
        case 1:
            return weir::idle(first_ + 1);
        case 2:
            return weir::passed(7000);
        default:
            return weir::ended();
        }
    }

private:
    std::uint64_t first_ = 0;
    int step_ = 0;
};

int main(int argc, char **argv) {
    weir::Settings settings;
    Marks marks;
    try {
        const std::string at = settings.take(argc, argv);
        weir::run(at, settings, marks);
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    return 0;
}
