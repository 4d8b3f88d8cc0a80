/* The bare loop of src/bin/bare-coap.rs in C, so that its language is seen to cost nothing: same
 * calls, same order, same arguments and output. Any failure ends the program. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#define SECOND_NS 1000000000ull
#define EVENTS 1024
/* A confirmable POST on /telemetry, a token of two bytes, octet-stream; id and token written over. */
#define HEAD "\x42\x02\0\0\0\0\xb9telemetry\x11\x2a\xff"
#define HEAD_BYTES (sizeof HEAD - 1)

struct link { int fd; uint16_t id; int unanswered; uint64_t owed; };

static int epoll;
static struct epoll_event events[EVENTS];
static struct link *links;
static size_t count;
static unsigned char request[HEAD_BYTES + 100];
static uint64_t answers;

static void check(int holds, const char *what) {
    if (!holds) { perror(what); exit(1); }
}

static uint64_t now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec * SECOND_NS + at.tv_nsec;
}

static void open_link(struct sockaddr_in *to, size_t index) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    check(fd >= 0, "socket");
    check(!connect(fd, (struct sockaddr *)to, sizeof *to), "connect");
    struct epoll_event event = { .events = EPOLLIN | EPOLLET };
    event.data.u64 = index;
    check(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
    links[index].fd = fd;
}

/* Sends what is owed, if the last request has its answer. */
static void send_owed(struct link *link) {
    if (link->unanswered || !link->owed) return;
    link->unanswered = 1;
    link->owed--;
    link->id++;
    uint16_t id = htons(link->id);
    memcpy(request + 2, &id, 2);
    memcpy(request + 4, &id, 2);
    check(send(link->fd, request, sizeof request, 0) == sizeof request, "send");
}

static void owe(size_t index, uint64_t messages) {
    links[index].owed += messages;
    send_owed(&links[index]);
}

/* Takes the acknowledgement of what is under way, with a response of success. */
static void hear(struct link *link) {
    unsigned char bytes[256] = { 0 }, wanted[6] = { 0x62, 0x44 };
    ssize_t got = recv(link->fd, bytes, sizeof bytes, 0);
    check(got >= 0 || errno == EAGAIN, "recv");
    if (got <= 0) return;
    uint16_t id = htons(link->id);
    memcpy(wanted + 2, &id, 2);
    memcpy(wanted + 4, &id, 2);
    check(got == sizeof wanted && !memcmp(bytes, wanted, got), "the target says something else");
    answers++;
    link->unanswered = 0;
    send_owed(link);
}

/* Hears what comes within so long. */
static void wait_ns(uint64_t ns) {
    struct timespec wait = { ns / SECOND_NS, ns % SECOND_NS };
    int got = epoll_pwait2(epoll, events, EVENTS, &wait, NULL);
    check(got >= 0, "epoll_pwait2");
    for (int at = 0; at < got; at++) hear(&links[events[at].data.u64]);
}

static void saturated(uint64_t end) {
    for (size_t index = 0; index < count; index++) owe(index, UINT64_MAX);
    while (now(CLOCK_MONOTONIC) < end) wait_ns(SECOND_NS);
}

static size_t paced(uint64_t begin, uint64_t end, uint64_t period, uint64_t *late) {
    size_t due_so_far = 0;
    for (uint64_t due = begin; due < end; due += period) {
        uint64_t taken = now(CLOCK_MONOTONIC);
        for (; taken < due; taken = now(CLOCK_MONOTONIC)) wait_ns(due - taken);
        late[due_so_far] = taken - due;
        owe(due_so_far++ % count, 1);
    }
    return due_so_far;
}

static int ascending(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

int main(int words, char **word) {
    check(words == 5, "usage: bare_coap ADDRESS LINKS RATE SECONDS");
    char *port = strchr(word[1], ':');
    check(port != NULL, "ADDRESS");
    *port++ = 0;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
    check(inet_pton(AF_INET, word[1], &to.sin_addr) == 1, "ADDRESS");
    count = strtoull(word[2], NULL, 10);
    uint64_t rate = strtoull(word[3], NULL, 10), seconds = strtoull(word[4], NULL, 10);
    memcpy(request, HEAD, HEAD_BYTES);
    memset(request + HEAD_BYTES, 'x', 100);
    links = calloc(count, sizeof *links);
    uint64_t period = rate ? SECOND_NS / rate : seconds * SECOND_NS;
    uint64_t *late = calloc(seconds * SECOND_NS / period + 2, sizeof *late);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    check(links && late && epoll >= 0, "memory");
    check(!prctl(PR_SET_TIMERSLACK, 1ul), "PR_SET_TIMERSLACK");
    for (size_t index = 0; index < count; index++) open_link(&to, index);
    uint64_t open_cpu = now(CLOCK_THREAD_CPUTIME_ID), begin = now(CLOCK_MONOTONIC);
    uint64_t end = begin + seconds * SECOND_NS;
    size_t sent = 0;
    if (rate) sent = paced(begin, end, period, late);
    else saturated(end);
    uint64_t cpu = now(CLOCK_THREAD_CPUTIME_ID) - open_cpu;
    uint64_t wall = now(CLOCK_MONOTONIC) - begin;
    qsort(late, sent, sizeof *late, ascending);
    printf("{\"messages\":%ju,\"cpu_ns\":%ju,\"wall_ns\":%ju,\"lateness_p99_ns\":%ju}\n",
           (uintmax_t)answers, (uintmax_t)cpu, (uintmax_t)wall, (uintmax_t)late[sent * 99 / 100]);
    return 0;
}
