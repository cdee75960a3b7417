/* A source that writes and sends fragments of one length, as fast as the partition takes them: source AT KEY_FILE BYTES */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>

enum { BETWEEN_LOOKS = 4096 };

/* Sends until the partition is busy, but not for long. Returns for how many ms to wait for room; orders are looked for without a wait. */
static int send_some(weir_link *link, size_t bytes, uint64_t *number) {
    for (int i = 0; i < BETWEEN_LOOKS; i++) {
        void *slot = weir_reserve(link, bytes);
        if (slot == NULL) {
            return 1;
        }
        memset(slot, (int)*number, bytes);
        weir_head head = {.number = (*number)++, .flags = WEIR_HAS_NUMBER};
        weir_commit(link, &head, bytes);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "expected an address, a file with a key, and a number of bytes\n");
        return 1;
    }
    weir_settings settings = {.name = "source", .key_file = argv[2]};
    weir_link *link = weir_open(argv[1], &settings);
    if (link == NULL) {
        fprintf(stderr, "source: %s\n", weir_error(NULL));
        return 1;
    }
    size_t bytes = strtoul(argv[3], NULL, 10);
    uint64_t number = 0;
    int running = 0, pause_ms = 100;
    weir_order order;
    while ((order = weir_wait(link, pause_ms, NULL)) < WEIR_END) {
        running = (running || order == WEIR_START) && order != WEIR_STOP;
        pause_ms = running ? send_some(link, bytes, &number) : 100;
        if (order == WEIR_STOP) {
            weir_end(link);
        }
    }
    weir_close(link);
    return 0;
}
