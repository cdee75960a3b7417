// An adapter of Weir: it declares names of the public interface of MIDAS, and holds no code of MIDAS. See docs/adapters.md.
#ifndef WEIR_MVODB_H
#define WEIR_MVODB_H

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// Values by path in the memory of this program, below one folder. A value that is absent keeps what the caller has put in: its default.
class MVOdb {
public:
    /// Of one value, or of the items of an array: `/Path/Name = VALUE, VALUE`.
    using Values = std::vector<std::string>;

    MVOdb() : MVOdb(std::make_shared<Tree>(), "") {}

    /// The folder of this name below this one, as long as this one.
    MVOdb *Chdir(const char *name, bool = false) {
        const std::lock_guard<std::mutex> lock(tree_->mutex);
        auto &folder = tree_->folders[in_capitals(path(name))];
        if (folder == nullptr) {
            folder.reset(new MVOdb(tree_, path(name)));
        }
        return folder.get();
    }

    void RI(const char *name, int *value, bool create = false) { read(name, value, create); }
    void RD(const char *name, double *value, bool create = false) { read(name, value, create); }
    void RF(const char *name, float *value, bool create = false) { read(name, value, create); }
    void RB(const char *name, bool *value, bool create = false) { read(name, value, create); }
    void RU16(const char *name, std::uint16_t *value, bool create = false) { read(name, value, create); }
    void RU32(const char *name, std::uint32_t *value, bool create = false) { read(name, value, create); }
    void RS(const char *name, std::string *value, bool create = false) { read(name, value, create); }

    /// Arrays: `size` items if there are none and they are to be created.
    void RIA(const char *name, std::vector<int> *values, bool create = false, int size = 0) { read_all(name, values, create, size); }
    void RDA(const char *name, std::vector<double> *values, bool create = false, int size = 0) { read_all(name, values, create, size); }
    void RFA(const char *name, std::vector<float> *values, bool create = false, int size = 0) { read_all(name, values, create, size); }
    void RU16A(const char *name, std::vector<std::uint16_t> *values, bool create = false, int size = 0) { read_all(name, values, create, size); }
    void RU32A(const char *name, std::vector<std::uint32_t> *values, bool create = false, int size = 0) { read_all(name, values, create, size); }
    void RSA(const char *name, std::vector<std::string> *values, bool create = false, int size = 0) { read_all(name, values, create, size); }

    void WI(const char *name, int value) { write(name, value); }
    void WD(const char *name, double value) { write(name, value); }
    void WF(const char *name, float value) { write(name, value); }
    void WB(const char *name, bool value) { write(name, value); }
    void WU16(const char *name, std::uint16_t value) { write(name, value); }
    void WU32(const char *name, std::uint32_t value) { write(name, value); }
    void WS(const char *name, const char *value) { set(path(name), {value}); }

    /// A value of a path from the root on.
    void set(const std::string &path, const Values &values) {
        const std::lock_guard<std::mutex> lock(tree_->mutex);
        tree_->values[in_capitals(path.front() == '/' ? path : '/' + path)] = values;
    }

private:
    struct Tree {
        std::mutex mutex;
        std::map<std::string, Values> values;
        std::map<std::string, std::unique_ptr<MVOdb>> folders;
    };

    MVOdb(std::shared_ptr<Tree> tree, const std::string &folder) : tree_(std::move(tree)), folder_(folder) {}

    std::string path(const std::string &name) const { return name.empty() || name.front() == '/' ? name : folder_ + '/' + name; }

    /// Names of the database are the same in capitals and small letters.
    static std::string in_capitals(std::string path) {
        for (char &letter : path) {
            letter = letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
        }
        return path;
    }

    Values find(const std::string &name) const {
        const std::lock_guard<std::mutex> lock(tree_->mutex);
        const auto found = tree_->values.find(in_capitals(path(name)));
        return found == tree_->values.end() ? Values() : found->second;
    }

    template <typename T> void read(const char *name, T *value, bool create) {
        const Values found = find(name);
        if (!found.empty()) {
            parse(name, found.front(), value);
        } else if (create) {
            write(name, *value);
        }
    }

    template <typename T> void read_all(const char *name, std::vector<T> *values, bool create, int size) {
        const Values found = find(name);
        if (!found.empty()) {
            values->resize(found.size());
            for (std::size_t at = 0; at < found.size(); at++) {
                parse(name, found[at], &(*values)[at]);
            }
        } else if (create) {
            if (size > 0) {
                values->resize(static_cast<std::size_t>(size));
            }
            Values written;
            for (const T &value : *values) {
                written.push_back(text(value));
            }
            set(path(name), written);
        }
    }

    template <typename T> void write(const char *name, T value) { set(path(name), {text(value)}); }

    template <typename T> static std::string text(const T &value) {
        std::ostringstream text;
        text.precision(17);
        text << std::boolalpha << value;
        return text.str();
    }

    /// Throws std::invalid_argument: a detector does not run with a default in place of what was meant.
    template <typename T> void parse(const std::string &name, const std::string &text, T *value) const {
        bool is_good = true;
        if constexpr (std::is_same_v<T, std::string>) {
            *value = text;
        } else if constexpr (std::is_same_v<T, bool>) {
            const std::string capitals = in_capitals(text);
            *value = capitals == "TRUE" || capitals == "Y" || capitals == "YES" || capitals == "1";
            is_good = *value || capitals == "FALSE" || capitals == "N" || capitals == "NO" || capitals == "0";
        } else {
            T parsed{};
            std::istringstream stream(text);
            // By the prefix: 0x is hexadecimal.
            stream.unsetf(std::ios::basefield);
            is_good = (stream >> parsed) && (stream >> std::ws).eof() && (std::is_signed_v<T> || text.find('-') == std::string::npos);
            *value = parsed;
        }
        if (!is_good) {
            throw std::invalid_argument(path(name) + " = " + text + ": expected a value of the type that the program reads");
        }
    }

    const std::shared_ptr<Tree> tree_;
    const std::string folder_;
};

#endif
