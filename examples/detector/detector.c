/* The read-out of a detector in C: your loop runs, and hands fragments to a partition of Weir.
 *
 *   make -C examples/detector && examples/detector/detector-c shm:device */
#include <stdio.h>
#include <weir.h>

enum { LONGEST = 300 };

/* Your device; this one makes up its data. Gives the length of the event's payload, or 0 if there is no event yet. */
static size_t read_device(uint64_t number, unsigned char *payload) {
    size_t len = 100 + number % 200;
    for (size_t i = 0; i < len; i++) {
        payload[i] = (unsigned char)(number + i);
    }
    return len;
}

/* Sends what is there, but looks for orders now and then. Gives how long to wait for one, in ms. */
static int send_events(weir_link *link, uint64_t *number) {
    for (int i = 0; i < 100; i++) {
        unsigned char *slot = weir_reserve(link, LONGEST);
        if (slot == NULL) {
            return 1; /* busy; of an error weir_wait() will tell, too */
        }
        size_t len = read_device(*number, slot);
        if (len == 0) {
            return 1;
        }
        weir_head head = {.number = (*number)++, .flags = WEIR_HAS_NUMBER};
        weir_commit(link, &head, len);
    }
    return 0;
}

int main(int argc, char **argv) {
    weir_settings settings = {.name = "device"};
    weir_link *link = weir_open(argc > 1 ? argv[1] : "shm:device", &settings);
    if (link == NULL) {
        fprintf(stderr, "device: %s\n", weir_error(NULL));
        return 1;
    }
    uint64_t number = 0;
    int running = 0, pause_ms = -1;
    weir_order order;
    while ((order = weir_wait(link, pause_ms, NULL)) < WEIR_END) {
        if (order == WEIR_START) {
            running = 1; /* arm the device */
            number = 0;
        } else if (order == WEIR_STOP) {
            running = 0; /* disarm it */
            weir_end(link);
        }
        pause_ms = running ? send_events(link, &number) : -1;
    }
    if (order == WEIR_ERROR) {
        fprintf(stderr, "device: %s\n", weir_error(link));
    }
    weir_close(link);
    return order == WEIR_END ? 0 : 1;
}
