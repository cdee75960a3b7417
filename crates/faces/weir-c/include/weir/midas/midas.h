// An adapter of Weir: it declares names of the public interface of MIDAS, and holds no code of MIDAS. See docs/adapters.md.
#ifndef WEIR_MIDAS_H
#define WEIR_MIDAS_H

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>

typedef std::uint8_t BYTE;
typedef std::uint16_t WORD;
typedef std::uint32_t DWORD;
typedef std::uint64_t QWORD;
typedef std::int32_t INT;
typedef std::uint32_t BOOL;

#ifndef TRUE
#define TRUE 1
#define FALSE 0
#endif

enum : int { SUCCESS = 1 };

/// What an item of a bank is.
enum : int {
    TID_BYTE = 1,
    TID_UINT8 = 1,
    TID_SBYTE = 2,
    TID_INT8 = 2,
    TID_CHAR = 3,
    TID_WORD = 4,
    TID_UINT16 = 4,
    TID_SHORT = 5,
    TID_INT16 = 5,
    TID_DWORD = 6,
    TID_UINT32 = 6,
    TID_INT = 7,
    TID_INT32 = 7,
    TID_BOOL = 8,
    TID_FLOAT = 9,
    TID_FLOAT32 = 9,
    TID_DOUBLE = 10,
    TID_FLOAT64 = 10,
    TID_BITFIELD = 11,
    TID_STRING = 12,
    TID_ARRAY = 13,
    TID_STRUCT = 14,
    TID_KEY = 15,
    TID_LINK = 16,
    TID_INT64 = 17,
    TID_UINT64 = 18,
    TID_QWORD = 18,
    TID_LAST = 19
};

/// What every event begins with.
struct EVENT_HEADER {
    std::int16_t event_id;
    std::int16_t trigger_mask;
    DWORD serial_number; /* from 1 in each run */
    DWORD time_stamp;    /* seconds since 1970 */
    DWORD data_size;     /* of what follows, in bytes */
};
static_assert(sizeof(EVENT_HEADER) == 16, "as MIDAS writes it");

/// Kinds of messages; MERROR and so on also say where.
enum : int { MT_ERROR = 1, MT_INFO = 2, MT_DEBUG = 4, MT_USER = 8, MT_LOG = 16, MT_TALK = 32, MT_CALL = 64 };
#define MERROR MT_ERROR, __FILE__, __LINE__
#define MINFO MT_INFO, __FILE__, __LINE__
#define MDEBUG MT_DEBUG, __FILE__, __LINE__
#define MUSER MT_USER, __FILE__, __LINE__
#define MLOG MT_LOG, __FILE__, __LINE__
#define MTALK MT_TALK, __FILE__, __LINE__
#define MCALL MT_CALL, __FILE__, __LINE__

namespace weir::midas {

/// A text as printf makes it.
inline std::string formatted(const char *format, std::va_list arguments) {
    std::va_list again;
    va_copy(again, arguments);
    const int length = std::vsnprintf(nullptr, 0, format, again);
    va_end(again);
    std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
    std::vsnprintf(text.data(), text.size() + 1, format, arguments);
    return text;
}

/// To the standard error.
inline void message(int kind, const char *file, int line, const char *routine, const std::string &text) {
    if (kind == MT_ERROR) {
        std::fprintf(stderr, "ERROR: [%s:%d, %s] %s\n", file, line, routine, text.c_str());
    } else {
        std::fprintf(stderr, "[%s] %s\n", routine, text.c_str());
    }
}

}  // namespace weir::midas

__attribute__((format(printf, 5, 6))) inline INT cm_msg(INT kind, const char *file, INT line, const char *routine, const char *format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    weir::midas::message(kind, file, line, routine, weir::midas::formatted(format, arguments));
    va_end(arguments);
    return SUCCESS;
}

#endif
