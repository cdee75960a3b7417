// An adapter of Weir: it declares names of the public interface of MIDAS, and holds no code of MIDAS. See docs/adapters.md.
#ifndef WEIR_MVODB_H
#define WEIR_MVODB_H

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// Why a call failed, for who asks.
class MVOdbError {
public:
    bool fError = false;
    std::string fErrorString;
    std::string fPath;
    int fStatus = 0;
};

/// Values by path in the memory of this program, below one folder. A value that is absent keeps what the caller has put in: its default.
class MVOdb {
public:
    /// Of one value, or of the items of an array: `/Path/Name = VALUE, VALUE`.
    using Values = std::vector<std::string>;

    MVOdb() : MVOdb(std::make_shared<Tree>(), "") {}

    /// The folder of this name below this one, as long as this one.
    MVOdb *Chdir(const char *name, bool = false, MVOdbError * = nullptr) {
        const std::lock_guard<std::mutex> lock(tree_->mutex);
        auto &folder = tree_->folders[in_capitals(path(name))];
        if (folder == nullptr) {
            folder.reset(new MVOdb(tree_, path(name)));
        }
        return folder.get();
    }

// For each type: a value, all items of an array, one of them; the same to write. An array has `size` items if there is none and it is to be created.
#define WEIR_ODB_TYPE(LETTERS, TYPE)                                                                                                       \
    void R##LETTERS(const char *name, TYPE *value, bool create = false, MVOdbError *error = nullptr) { read(name, value, create, error); } \
    void R##LETTERS##A(const char *name, std::vector<TYPE> *values, bool create = false, int size = 0, MVOdbError *error = nullptr) {      \
        read_all(name, values, create, size, error);                                                                                       \
    }                                                                                                                                      \
    void R##LETTERS##AI(const char *name, int index, TYPE *value, MVOdbError *error = nullptr) { read_item(name, index, value, error); }   \
    void W##LETTERS(const char *name, TYPE value, MVOdbError * = nullptr) { set(path(name), {text(value)}); }                              \
    void W##LETTERS##A(const char *name, const std::vector<TYPE> &values, MVOdbError * = nullptr) { write_all(name, values); }             \
    void W##LETTERS##AI(const char *name, int index, TYPE value, MVOdbError * = nullptr) { write_item(name, index, text(value)); }

    WEIR_ODB_TYPE(B, bool)
    WEIR_ODB_TYPE(I, int)
    WEIR_ODB_TYPE(D, double)
    WEIR_ODB_TYPE(F, float)
    WEIR_ODB_TYPE(U16, std::uint16_t)
    WEIR_ODB_TYPE(U32, std::uint32_t)
#undef WEIR_ODB_TYPE

    // Texts say how long one may be, which does not matter here.
    void RS(const char *name, std::string *value, bool create = false, int = 0, MVOdbError *error = nullptr) { read(name, value, create, error); }
    void RSA(const char *name, std::vector<std::string> *values, bool create = false, int size = 0, int = 0, MVOdbError *error = nullptr) {
        read_all(name, values, create, size, error);
    }
    void RSAI(const char *name, int index, std::string *value, MVOdbError *error = nullptr) { read_item(name, index, value, error); }
    void WS(const char *name, const char *value, int = 0, MVOdbError * = nullptr) { set(path(name), {value}); }
    void WSA(const char *name, const std::vector<std::string> &values, int, MVOdbError * = nullptr) { write_all(name, values); }
    void WSAI(const char *name, int index, const char *value, MVOdbError * = nullptr) { write_item(name, index, value); }

    void Delete(const char *name, MVOdbError * = nullptr) {
        const std::lock_guard<std::mutex> lock(tree_->mutex);
        tree_->values.erase(in_capitals(path(name)));
    }

    // A value of another type than the one read ends the program, unless it asks for the error.
    void SetPrintError(bool) {}
    bool GetPrintError() const { return true; }

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

    template <typename T> void read(const char *name, T *value, bool create, MVOdbError *error) {
        const Values found = find(name);
        if (!found.empty()) {
            or_error(name, error, [&] { *value = parsed<T>(name, found.front()); });
        } else if (create) {
            set(path(name), {text(*value)});
        }
    }

    template <typename T> void read_all(const char *name, std::vector<T> *values, bool create, int size, MVOdbError *error) {
        Values found = find(name);
        // Without a vector the array gets this size, too.
        if (create && (found.empty() || (values == nullptr && size > 0))) {
            found = found.empty() && values != nullptr ? texts(*values) : found;
            found.resize(size > 0 ? static_cast<std::size_t>(size) : found.size(), text(T()));
            set(path(name), found);
        }
        if (values == nullptr || found.empty()) {
            return;
        }
        or_error(name, error, [&] {
            std::vector<T> all;
            for (const std::string &item : found) {
                all.push_back(parsed<T>(name, item));
            }
            *values = all;
        });
    }

    template <typename T> void read_item(const char *name, int index, T *value, MVOdbError *error) {
        const Values found = find(name);
        if (index >= 0 && static_cast<std::size_t>(index) < found.size()) {
            or_error(name, error, [&] { *value = parsed<T>(name, found[static_cast<std::size_t>(index)]); });
        }
    }

    template <typename T> void write_all(const char *name, const std::vector<T> &values) { set(path(name), texts(values)); }

    void write_item(const char *name, int index, const std::string &value) {
        Values values = find(name);
        const std::size_t at = index < 0 ? 0 : static_cast<std::size_t>(index);
        values.resize(std::max(values.size(), at + 1));
        values[at] = value;
        set(path(name), values);
    }

    /// What fails is told to who asks, and thrown otherwise.
    template <typename Call> void or_error(const char *name, MVOdbError *error, Call call) const {
        try {
            call();
        } catch (const std::invalid_argument &failed) {
            if (error == nullptr) {
                throw;
            }
            error->fError = true;
            error->fErrorString = failed.what();
            error->fPath = path(name);
        }
    }

    template <typename T> static Values texts(const std::vector<T> &values) {
        Values texts;
        for (const T &value : values) {
            texts.push_back(text(value));
        }
        return texts;
    }

    template <typename T> static std::string text(const T &value) {
        std::ostringstream text;
        text.precision(17);
        text << std::boolalpha << value;
        return text.str();
    }

    /// Throws std::invalid_argument: a detector does not run with a default in place of what was meant.
    template <typename T> T parsed(const std::string &name, const std::string &text) const {
        T value{};
        bool is_good = true;
        if constexpr (std::is_same_v<T, std::string>) {
            value = text;
        } else if constexpr (std::is_same_v<T, bool>) {
            const std::string capitals = in_capitals(text);
            value = capitals == "TRUE" || capitals == "Y" || capitals == "YES" || capitals == "1";
            is_good = value || capitals == "FALSE" || capitals == "N" || capitals == "NO" || capitals == "0";
        } else {
            std::istringstream stream(text);
            // By the prefix: 0x is hexadecimal.
            stream.unsetf(std::ios::basefield);
            is_good = (stream >> value) && (stream >> std::ws).eof() && (std::is_signed_v<T> || text.find('-') == std::string::npos);
        }
        if (!is_good) {
            throw std::invalid_argument(path(name) + " = " + text + ": expected a value of the type that the program reads");
        }
        return value;
    }

    const std::shared_ptr<Tree> tree_;
    const std::string folder_;
};

#endif
