/* weir.h: a detector's read-out pushes its fragments to a partition of Weir.
 *
 * Two ways. weir_run() owns the loop and calls five functions of yours: begin with it. Or your loop is the one that runs, and you call
 * weir_open(), weir_wait(), weir_reserve(), weir_commit(), weir_end() and weir_close().
 *
 * A link is used by one thread at a time. No function throws; only those that say so wait. Texts are UTF-8 and end in NUL.
 * Manual: docs/integrate-your-detector.md. Licence: Apache-2.0. */
#ifndef WEIR_H
#define WEIR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why a call failed; weir_error() says it in words. */
typedef enum weir_code {
    WEIR_OK = 0,
    WEIR_BUSY = 1,         /* the partition takes nothing now: try again, and count dead time */
    WEIR_BAD_ARGUMENT = 2, /* a NULL, a text that is not UTF-8, an address or key that is none, a call out of order */
    WEIR_UNREACHABLE = 3,  /* no partition listens there, and none came in time */
    WEIR_REFUSED = 4,      /* the partition does not take this source: wrong key, name, identifier or version, or it has one */
    WEIR_CLOSED = 5,       /* the link has ended: the partition is gone, or has cut it */
    WEIR_TOO_LONG = 6,     /* a payload above weir_size_max(); nothing was sent */
    WEIR_SYSTEM = 7,       /* the operating system refuses memory, a descriptor, a thread */
    WEIR_FAILED = 8,       /* one of the five functions has failed (weir_run) */
    WEIR_BLOCKED = 9       /* one of the five functions does not return (weir_run) */
} weir_code;

/* What weir_wait() has found. */
typedef enum weir_order {
    WEIR_NOTHING = 0, /* no order within the time */
    WEIR_START = 1,   /* a run begins: arm the device, send fragments */
    WEIR_STOP = 2,    /* the run ends: disarm, send what is left, call weir_end() */
    WEIR_END = 3,     /* the link has ended: call weir_close() */
    WEIR_ERROR = 4    /* the link is broken: weir_error(), then weir_close() */
} weir_order;

/* Flags of a fragment. */
#define WEIR_HAS_NUMBER 1         /* `number` is its event number */
#define WEIR_HAS_TIME 2           /* `begin` and `end` are its time */
#define WEIR_CHECKSUM 4           /* the library sends a CRC-32C of the payload with it, which the partition checks */
#define WEIR_TRANSMISSION_ERROR 8 /* your link has seen an error in it */
#define WEIR_CUT 16               /* you had to cut it */

/* What a fragment says of itself. */
typedef struct weir_head {
    uint64_t number; /* event number: the trigger that it belongs to */
    uint64_t begin;  /* time in ns */
    uint64_t end;    /* time in ns */
    uint32_t trigger_type;
    uint32_t flags; /* WEIR_HAS_NUMBER and others */
} weir_head;

/* Who a source is. Fields that are 0 have their default. */
typedef struct weir_settings {
    const char *name;     /* as the configuration of the partition names it; needed */
    const char *key_file; /* file with the key of the partition; TCP needs one */
    uint32_t id;          /* source identifier, if the source knows it */
    uint32_t patience_ms; /* how long to wait for the partition; a minute by default */
    uint32_t deadline_ms; /* how long the partition may wait for an order to be taken; 5 s by default */
} weir_settings;

/* Sets the fields of `settings` that the command line of a source names. It sets `name` also where that is NULL: to that of the address.
 * Arguments: an address, --name, --key-file, --patience, --deadline, --set KEY=VALUE. Gives the address for weir_run() or
 * weir_open(); NULL for help or a wrong argument: weir_error(NULL) has the text. What it gives is valid as long as the program. */
const char *weir_arguments(int argc, char *const *argv, weir_settings *settings);

/* What --set has said of this key, or NULL; valid as long as the program. For `configure`, or anywhere else behind weir_arguments(). */
const char *weir_parameter(const char *key);

typedef struct weir_link weir_link;

/* Connects to a partition at "shm:NAME", "shm:/path.sock" or "tcp://HOST:PORT"; waits up to patience_ms for it to listen. From then on a
 * program that leaves an order waiting for deadline_ms, without a call of weir_wait(), ends with a message and status 70: the
 * partition cannot wait for a device that hangs.
 * NULL on failure, and weir_error(NULL) says why: WEIR_BAD_ARGUMENT, WEIR_UNREACHABLE, WEIR_REFUSED, WEIR_SYSTEM. */
weir_link *weir_open(const char *at, const weir_settings *settings);

/* Waits up to timeout_ms for an order, or not at all with 0; without limit if negative. Of WEIR_START, *run is the number of the
 * run; `run` may be NULL. Call it often: 5 times a second and more. WEIR_ERROR: WEIR_BAD_ARGUMENT, WEIR_CLOSED, WEIR_SYSTEM. */
weir_order weir_wait(weir_link *link, int timeout_ms, uint32_t *run);

/* Space for a payload of up to `len` bytes, in memory that the partition serves: write it there, once, in place. It is yours until the next
 * call of any function with this link. What it holds before is undefined. NULL means busy: weir_error_code() is WEIR_BUSY, and you try
 * again after a call of weir_wait(); any other code is an error: WEIR_BAD_ARGUMENT, WEIR_TOO_LONG, WEIR_CLOSED, WEIR_SYSTEM. */
void *weir_reserve(weir_link *link, size_t len);

/* Sends the first `len` bytes of what was reserved last. WEIR_BAD_ARGUMENT (nothing is reserved, or less), WEIR_CLOSED, WEIR_SYSTEM. */
weir_code weir_commit(weir_link *link, const weir_head *head, size_t len);

/* Reserves, copies `payload`, commits. WEIR_BUSY, and those of weir_reserve() and weir_commit(). */
weir_code weir_send(weir_link *link, const weir_head *head, const void *payload, size_t len);

/* Sends `count` payloads, `len` bytes each, that lie one behind the other; their event numbers are number, number + 1 and so on. Says how
 * many it has sent: fewer if the partition is busy, or on an error, which weir_error_code() tells apart. */
size_t weir_send_many(weir_link *link, uint64_t number, const void *payloads, size_t len, size_t count);

/* Says that no fragment of a lower number follows, nor one that is older than `time` in ns, if that is not 0. Send it where data
 * are rare: then nobody waits for this source. WEIR_CLOSED, WEIR_SYSTEM. */
weir_code weir_idle(weir_link *link, uint64_t number, uint64_t time);

/* Tells run control how the source is, in a few words. WEIR_BAD_ARGUMENT, WEIR_CLOSED, WEIR_SYSTEM. */
weir_code weir_report(weir_link *link, const char *text);

/* Says that all fragments of the run are sent; after WEIR_STOP. The WEIR_START of the next run comes only behind it. WEIR_CLOSED,
 * WEIR_SYSTEM. */
weir_code weir_end(weir_link *link);

/* Lets what was committed go out at once; weir_wait() does so, too. WEIR_CLOSED, WEIR_SYSTEM. */
weir_code weir_flush(weir_link *link);

/* Names the function of yours that runs from now on, for the message that ends a program which hangs; NULL: none is named. */
weir_code weir_inside(weir_link *link, const char *function);

/* The longest payload that the partition takes from this source, in bytes; 0 for NULL. */
size_t weir_size_max(const weir_link *link);

/* A descriptor that is readable while an order waits, for poll() in a loop of your own; do not read from it or close it. -1 for NULL. */
int weir_orders(const weir_link *link);

/* Ends the link and frees it, and what was reserved with it; NULL is allowed. */
void weir_close(weir_link *link);

/* What the last failed call on this link, or with NULL the last failed weir_open() or weir_run() of this thread, says. Valid until the
 * next call that fails. Never NULL. */
const char *weir_error(const weir_link *link);

/* The code of the same. */
weir_code weir_error_code(const weir_link *link);

/* What weir_source.read() may give. */
typedef enum weir_reading {
    WEIR_READ_NOTHING = 0,   /* nothing is there now */
    WEIR_READ_COMMITTED = 1, /* the slot holds a fragment: *head and *len say which */
    WEIR_READ_IDLE = 2,      /* nothing is there, and no fragment below head->number will come; or, if head->begin is not 0,
                                none that begins before that time in ns */
    WEIR_READ_END = 3,       /* nothing is there, and nothing more will come in this run */
    WEIR_READ_FAILED = 4     /* the device failed: the source ends */
} weir_reading;

/* A source: the five functions, each called with `context`. All but `read` may be NULL. `configure`, `start` and `stop` give 0, or else the
 * source ends. They run in a thread of the library. */
typedef struct weir_source {
    void *context;
    int (*configure)(void *context, const weir_settings *settings); /* once, when the partition has taken the source */
    int (*start)(void *context, uint32_t run);                      /* arms the device */
    /* Reads at most one fragment into the slot of `size` bytes. Returns within deadline_ms. */
    weir_reading (*read)(void *context, void *slot, size_t size, weir_head *head, size_t *len);
    int (*stop)(void *context);            /* disarms it; `read` is called until it gives WEIR_READ_NOTHING */
    const char *(*status)(void *context);  /* how it is, or NULL; copied at once */
} weir_source;

/* Runs a source through all runs of a partition, until that ends the link: then WEIR_OK. If one of its functions blocks, its thread is left
 * behind, and WEIR_BLOCKED says which: end the program. Waits. All codes but WEIR_BUSY; weir_error(NULL). */
weir_code weir_run(const char *at, const weir_settings *settings, const weir_source *source);

#ifdef __cplusplus
}
#endif

#endif
