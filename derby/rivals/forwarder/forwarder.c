// The floor of the fifth race: bytes that pass from one socket to another, by one thread, with nothing but epoll, read and write.
//
//   forwarder LISTEN-PORT BACKEND-PORT
//
// Both on the loopback interface. Each connection that comes has one of its own to the backend. What one side cannot take waits, and the
// other side is not read meanwhile: no more than one buffer a direction is ever held. An end passes when all before it has; the connection
// goes with both ends, or with the first error.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 64 << 10, EVENTS = 64 };

// One socket of a pair, and what was read from it and not written to the other.
struct side {
  int fd;
  struct side *other;
  bool ended;        // nothing more comes from it
  bool passed_end;   // and the other was told
  bool dead;         // to be freed when the events at hand are done with
  size_t begin, end; // of what waits in `bytes`; 0 <= begin <= end <= BUFFER
  char bytes[BUFFER];
};

static int poller;

static void fail(const char *what) {
  fprintf(stderr, "forwarder: %s: %s\n", what, strerror(errno));
  exit(1);
}

static struct sockaddr_in loopback(const char *port) {
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return place;
}

// A side is read unless something waits; it is written when something waits for it.
static void watch(struct side *side, int how) {
  struct epoll_event event = {.events = 0, .data.ptr = side};
  if (!side->ended && side->begin == side->end) event.events |= EPOLLIN;
  if (side->other->begin < side->other->end) event.events |= EPOLLOUT;
  if (epoll_ctl(poller, how, side->fd, &event) < 0) fail("epoll_ctl");
}

static struct side *make(int fd) {
  struct side *side = malloc(sizeof *side);
  if (!side) fail("malloc");
  int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  memset(side, 0, offsetof(struct side, bytes));
  side->fd = fd;
  return side;
}

static void drop(struct side *side) {
  for (int i = 0; i < 2; i++, side = side->other) {
    if (side->dead) continue;
    side->dead = true;
    close(side->fd);
  }
}

// Writes what was read from `side` to the other one. False: the pair is lost.
static bool flush(struct side *side) {
  while (side->begin < side->end) {
    ssize_t n = write(side->other->fd, side->bytes + side->begin, side->end - side->begin);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n < 0) return false;
    side->begin += (size_t)n;
  }
  side->begin = side->end = 0;
  if (side->ended && !side->passed_end) {
    side->passed_end = true;
    shutdown(side->other->fd, SHUT_WR);
  }
  return true;
}

// Something has come from `side`. One read for each event: what remains makes another.
static bool take(struct side *side) {
  ssize_t n = read(side->fd, side->bytes, BUFFER);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  side->begin = 0;
  side->end = (size_t)n;
  side->ended = n == 0;
  return flush(side);
}

static void come(int listener, const struct sockaddr_in *backend) {
  int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (client < 0) return;
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (server < 0 || connect(server, (const struct sockaddr *)backend, sizeof *backend) < 0) {
    if (server >= 0) close(server);
    close(client);
    return;
  }
  // On the loopback interface a connection is there at once; from here on nothing blocks.
  if (fcntl(server, F_SETFL, O_NONBLOCK) < 0) fail("fcntl");
  struct side *a = make(client), *b = make(server);
  a->other = b;
  b->other = a;
  watch(a, EPOLL_CTL_ADD);
  watch(b, EPOLL_CTL_ADD);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "forwarder LISTEN-PORT BACKEND-PORT\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  struct sockaddr_in own = loopback(argv[1]), backend = loopback(argv[2]);
  int yes = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0) fail("socket");
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, (struct sockaddr *)&own, sizeof own) < 0) fail("bind");
  if (listen(listener, SOMAXCONN) < 0) fail("listen");
  poller = epoll_create1(EPOLL_CLOEXEC);
  if (poller < 0) fail("epoll_create1");
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event) < 0) fail("epoll_ctl");
  for (;;) {
    struct epoll_event events[EVENTS];
    int n = epoll_wait(poller, events, EVENTS, -1);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("epoll_wait");
    struct side *dead[2 * EVENTS];
    int gone = 0;
    for (int i = 0; i < n; i++) {
      struct side *side = events[i].data.ptr;
      if (!side) {
        come(listener, &backend);
        continue;
      }
      if (side->dead) continue;
      bool held = side->begin < side->end || side->other->begin < side->other->end;
      bool ended = side->ended || side->other->ended;
      bool well = !(events[i].events & EPOLLERR);
      if (well && events[i].events & EPOLLOUT) well = flush(side->other);
      if (well && events[i].events & (EPOLLIN | EPOLLHUP) && !side->ended && side->begin == side->end) well = take(side);
      bool holds = side->begin < side->end || side->other->begin < side->other->end;
      if (!well || (side->passed_end && side->other->passed_end)) {
        drop(side);
        dead[gone++] = side;
        dead[gone++] = side->other;
      } else if (held || holds || ended || side->ended) {
        // Nothing else changes what is watched: on the way that all bytes go there is no third system call.
        watch(side, EPOLL_CTL_MOD);
        watch(side->other, EPOLL_CTL_MOD);
      }
    }
    while (gone > 0) free(dead[--gone]);
  }
}
