/* The bare loop of src/bin/bare-loop.rs in C, so that its language is seen to cost nothing: same
 * calls, same order, same arguments and output. Any failure ends the program. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull
#define PENDING 128
#define LINKS_PER_SOURCE 12000
#define EVENTS 1024

struct link { int fd; size_t written; };

static int epoll;
static struct epoll_event events[EVENTS];
static struct link *links;
static size_t opened, count, length;
static unsigned char packet[128];

static void check(int holds, const char *what) {
    if (!holds) { perror(what); exit(1); }
}

static uint64_t now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec * SECOND_NS + at.tv_nsec;
}

static int wait_ns(uint64_t ns) {
    struct timespec wait = { ns / SECOND_NS, ns % SECOND_NS };
    int got = epoll_pwait2(epoll, events, EVENTS, &wait, NULL);
    check(got >= 0, "epoll_pwait2");
    return got;
}

/* Whether the event is something said, and whose. */
static int hear(int at, size_t *index) {
    char answer[64] = { 0 };
    *index = events[at].data.u64;
    if (!(events[at].events & EPOLLIN)) return 0;
    check(read(links[*index].fd, answer, sizeof answer) > 0, "the target closed a link");
    return 1;
}

/* 1 once the kernel has the whole message, else 0. */
static int send_message(size_t index) {
    struct link *link = &links[index];
    ssize_t taken = write(link->fd, packet + link->written, length - link->written);
    check(taken >= 0 || errno == EAGAIN, "write");
    if (taken <= 0) return 0;
    link->written = (link->written + taken) % length;
    return link->written == 0;
}

static void open_link(struct sockaddr_in *to) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    check(fd >= 0, "socket");
    check(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "TCP_NODELAY");
    if (count > LINKS_PER_SOURCE) {
        size_t sources = (count + LINKS_PER_SOURCE - 1) / LINKS_PER_SOURCE;
        struct sockaddr_in from = { .sin_family = AF_INET };
        from.sin_addr.s_addr = htonl(0x7f000001 + opened % sources);
        check(!setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one), "no port");
        check(!bind(fd, (struct sockaddr *)&from, sizeof from), "bind");
    }
    int done = connect(fd, (struct sockaddr *)to, sizeof *to);
    check(!done || errno == EINPROGRESS, "connect");
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
    event.data.u64 = opened;
    check(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
    links[opened++] = (struct link){ fd, 0 };
}

static void connect_all(struct sockaddr_in *to) {
    size_t connected = 0, index;
    while (connected < count) {
        while (opened < count && opened < connected + PENDING) open_link(to);
        for (int at = 0, got = wait_ns(SECOND_NS); at < got; at++) {
            if (hear(at, &index)) { connected++; continue; }
            char hello[22] = "\x10\x13\0\x04MQTT\x04\x02\0\0\0\x07" "b-";
            snprintf(hello + 16, 6, "%05zu", index);
            check(write(links[index].fd, hello, 21) == 21, "CONNECT");
        }
    }
}

static uint64_t saturated(uint64_t end, int qos) {
    uint64_t messages = 0;
    size_t index;
    while (now(CLOCK_MONOTONIC) < end) {
        uint64_t before = messages;
        if (qos == 0 || messages == 0)
            for (index = 0; index < count; index++) messages += send_message(index);
        for (int at = 0, got = wait_ns(messages == before ? 1000000 : 0); at < got; at++)
            if (hear(at, &index)) messages += send_message(index);
    }
    return messages;
}

static uint64_t paced(uint64_t begin, uint64_t end, uint64_t period, uint64_t *late) {
    uint64_t messages = 0;
    size_t index;
    for (uint64_t due = begin; due < end; due += period) {
        uint64_t taken = now(CLOCK_MONOTONIC);
        for (; taken < due; taken = now(CLOCK_MONOTONIC))
            for (int at = 0, got = wait_ns(due - taken); at < got; at++) hear(at, &index);
        late[messages] = taken - due;
        while (!send_message(messages % count)) wait_ns(1000000);
        messages++;
    }
    return messages;
}

static int ascending(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

int main(int words, char **word) {
    check(words == 6, "usage: bare_loop ADDRESS LINKS QOS RATE SECONDS");
    char *port = strchr(word[1], ':');
    check(port != NULL, "ADDRESS");
    *port++ = 0;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
    check(inet_pton(AF_INET, word[1], &to.sin_addr) == 1, "ADDRESS");
    count = strtoull(word[2], NULL, 10);
    int qos = atoi(word[3]);
    uint64_t rate = strtoull(word[4], NULL, 10), seconds = strtoull(word[5], NULL, 10);
    unsigned char head[] = { 0x30 | qos << 1, 113 + 2 * qos, 0, 11 };
    length = 4 + 11 + 2 * qos + 100;
    memcpy(packet, head, 4);
    memcpy(packet + 4, "m/d-00000/t", 11);
    memcpy(packet + 15, "\0\1", 2 * qos);
    memset(packet + length - 100, 'x', 100);
    links = calloc(count, sizeof *links);
    uint64_t *late = calloc(rate * seconds + 2, sizeof *late);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    check(links && late && epoll >= 0, "memory");
    check(!prctl(PR_SET_TIMERSLACK, 1ul), "PR_SET_TIMERSLACK");
    connect_all(&to);
    uint64_t connect_cpu = now(CLOCK_THREAD_CPUTIME_ID), begin = now(CLOCK_MONOTONIC);
    uint64_t end = begin + seconds * SECOND_NS;
    uint64_t messages = rate ? paced(begin, end, SECOND_NS / rate, late) : saturated(end, qos);
    uint64_t cpu = now(CLOCK_THREAD_CPUTIME_ID) - connect_cpu;
    uint64_t wall = now(CLOCK_MONOTONIC) - begin;
    if (rate) qsort(late, messages, sizeof *late, ascending);
    printf("{\"connects\":%zu,\"connect_cpu_ns\":%ju,\"messages\":%ju,\"cpu_ns\":%ju,"
           "\"wall_ns\":%ju,\"lateness_p99_ns\":%ju}\n", count, (uintmax_t)connect_cpu,
           (uintmax_t)messages, (uintmax_t)cpu, (uintmax_t)wall,
           (uintmax_t)(rate ? late[messages * 99 / 100] : 0));
    return 0;
}
