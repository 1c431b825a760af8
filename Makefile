# ringspan
#
# Knobs (make VAR=value):
#   CC, CLANG, BPFTOOL   compilers and bpftool                (cc, clang, bpftool)
#   CFLAGS, LDFLAGS      added to ours
#   WERROR=1             warnings are errors (developers, CI)
#   CONFIG               release | asan | fuzz: what is built, in build/CONFIG/
#   ARCH                 target: x86 | arm64                  (this machine's)
#   V=1                  show commands
#   ARGS                 passed on to `ringspan trace` by `make run`
#   PREFIX, DESTDIR      where `make install` puts things     (/usr/local)

CC      ?= cc
CLANG   ?= clang
# Ubuntu's /usr/sbin/bpftool is a wrapper that wants the running kernel's own copy: take any real one first.
BPFTOOL ?= $(firstword $(wildcard /usr/lib/linux-tools/*/bpftool /usr/sbin/bpftool /usr/bin/bpftool) bpftool)
CONFIG  ?= release
ARCH    ?= $(shell uname -m | sed -e s/x86_64/x86/ -e s/aarch64/arm64/)
PREFIX  ?= /usr/local
PKGCONF ?= pkg-config

VERSION := 0.1.0

B   := build/$(CONFIG)
BPF := build/bpf

ifeq ($(V),1)
Q :=
msg :=
else
Q := @
msg = @printf '  %-8s%s\n' "$(1)" "$(2)";
endif

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wvla \
	-Wwrite-strings -Wpointer-arith -Wformat=2 -Wundef -Wimplicit-fallthrough
ifeq ($(WERROR),1)
WARN += -Werror
endif

LIBS     := libbpf libelf zlib jansson yaml-0.1 libcurl libzstd libseccomp
LIBS_CF  := $(shell $(PKGCONF) --cflags $(LIBS) 2>/dev/null)
LIBS_LD  := $(shell $(PKGCONF) --libs $(LIBS) 2>/dev/null || echo -lbpf -lelf -lz -ljansson -lyaml -lcurl -lzstd -lseccomp)
ifeq ($(ARCH),x86)
LIBS_LD  += -lZydis# decodes instructions (user/tls/code.c); it has no .pc file everywhere
endif
INCLUDES := -Iuser -Iencoders -Ibpf -I$(BPF) -I.
BASE     := -std=gnu17 -g -D_GNU_SOURCE -DRS_VERSION='"$(VERSION)"' $(WARN) $(INCLUDES) $(LIBS_CF)

ifeq ($(CONFIG),release)
OPT := -O2 -fno-plt -fstack-protector-strong -D_FORTIFY_SOURCE=2
LDOPT := -Wl,-z,relro,-z,now
else ifeq ($(CONFIG),asan)
SAN := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT := -O1 $(SAN)
LDOPT := $(SAN)
else ifeq ($(CONFIG),fuzz)
CC := $(CLANG)
SAN := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
OPT := -O1 $(SAN)
LDOPT := -fsanitize=address,undefined
else
$(error CONFIG=$(CONFIG): release, asan or fuzz)
endif

# Sources: a new file is found, no list to edit.
USER_SRC := $(wildcard user/*.c user/*/*.c)
ENC_SRC  := $(wildcard encoders/*.c)
ENC_ONCE := encoders/registry.c encoders/sink.c encoders/chunks.c encoders/memo.c encoders/wire_json.c encoders/sentry_facts.c encoders/sentry_units.c
LIB_SRC  := $(filter-out user/main.c,$(USER_SRC)) $(ENC_ONCE)
# Encoders and their text pass are compiled once per SIMD level; encoders/registry.c picks one at start.
LEVELLED := $(filter-out $(ENC_ONCE),$(ENC_SRC))
ifeq ($(ARCH),x86)
LEVELS   := base ssse3 avx2 avx512
else
LEVELS   := base
endif
base_CF  :=
ssse3_CF := -mssse3
avx2_CF  := -mavx2 -mbmi -mbmi2 -mlzcnt -mtune=haswell
# Vectors stay 32 bytes wide: what counts is that bytes can be moved by a mask.
avx512_CF := $(avx2_CF) -mpopcnt -mavx512bw -mavx512vl -mavx512vbmi2 -mprefer-vector-width=256
LIB_OBJ  := $(LIB_SRC:%.c=$(B)/%.o) $(foreach l,$(LEVELS),$(LEVELLED:%.c=$(B)/%.$(l).o))
BPF_SRC  := $(sort $(wildcard bpf/probes/*.bpf.c))
SKEL     := $(BPF)/ringspan.skel.h
UNIT     := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
FUZZ     := $(filter-out main,$(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c)))
TEST_LIB := $(patsubst tests/lib/%.c,$(B)/tests/lib/%.o,$(wildcard tests/lib/*.c))

.DELETE_ON_ERROR:
.SECONDARY:
# No target is a file, but those with a directory in their names.
.PHONY: FORCE $(shell sed -n "s/^\([a-z][a-z0-9-]*\):.*/\1/p" Makefile)

all: build/ringspan ## build build/ringspan (default)

help: ## list the targets
	@grep -hE '^[a-z][a-z0-9-]*:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-19s %s\n", $$1, $$2}'

build/ringspan: build/$(CONFIG)/ringspan
	$(call msg,COPY,$@)
	$(Q)cp -f $< $@.tmp && mv -f $@.tmp $@

$(B)/ringspan: $(B)/user/main.o $(B)/libringspan.a
	$(call msg,LINK,$@)
	$(Q)$(CC) $(LDOPT) $(LDFLAGS) -o $@ $^ $(LIBS_LD) -lm

$(B)/libringspan.a: $(LIB_OBJ)
	$(call msg,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

# Parsers and encoders convert nothing silently.
$(B)/user/proto/%.o $(B)/encoders/%.o: WARN_EXTRA := -Wconversion -Wno-sign-conversion

$(B)/%.o: %.c | $(SKEL)
	$(call msg,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) $(WARN_EXTRA) $(OPT) $(CFLAGS) -MMD -MP -c -o $@ $<

define level_rule
$(B)/encoders/%.$(1).o: encoders/%.c
	$$(call msg,CC,$$< ($(1)))
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(BASE) $$(WARN_EXTRA) $$(OPT) $$($(1)_CF) $$(CFLAGS) -MMD -MP -c -o $$@ $$<
endef
$(foreach l,$(LEVELS),$(eval $(call level_rule,$(l))))

# BPF: all probe files as one translation unit. Linking objects (bpftool gen object) refuses two that
# declare the same kernel function, with libbpf 1.1.
BPF_CFLAGS := -target bpf -mcpu=v3 -g -O2 -std=gnu17 -Wall -Wextra -Wno-unused-parameter -Wno-unused-function \
	-Wno-gnu-variable-sized-type-not-at-end -D__BPF__ -D__TARGET_ARCH_$(ARCH) \
	-Ivmlinux/$(ARCH) -Ibpf $(LIBS_CF)

$(BPF)/ringspan.bpf.c: FORCE
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(BPF_SRC:bpf/%=%) > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(BPF)/ringspan.bpf.o: $(BPF)/ringspan.bpf.c
	$(call msg,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c -o $@ $<

$(SKEL): $(BPF)/ringspan.bpf.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name ringspan_bpf > $@

$(B)/tests/lib/%.o: tests/lib/%.c
	$(call msg,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) -Itests/lib $(OPT) $(CFLAGS) -MMD -MP -c -o $@ $<

# nghttp2 is what HTTP/2 is compared with.
$(B)/tests/test_hpack $(B)/fuzz/hpack $(B)/bench/http2 $(B)/diff/http2_sessions: PEER := -lnghttp2
$(B)/tests/%: tests/unit/%.c $(B)/libringspan.a $(TEST_LIB)
	$(call msg,TEST,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) -Itests/lib $(OPT) $(CFLAGS) -MMD -MP $(LDOPT) -o $@ $< $(TEST_LIB) $(B)/libringspan.a $(LIBS_LD) $(PEER) -lcmocka -lm

# The records themselves, from real sockets: needs root.
$(B)/capture_records: tests/live/capture_records.c $(B)/libringspan.a
	$(call msg,LINK,$@)
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) -MMD -MP $(LDOPT) $(LDFLAGS) -o $@ $< $(B)/libringspan.a $(LIBS_LD) -lm

$(B)/uring: tests/live/uring.c
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 -D_GNU_SOURCE $(WARN) -o $@ $<

check-capture: $(B)/capture_records $(B)/uring ## records captured from real sockets, both backends (root; T=name)
	$(Q)python3 tests/live/check_capture.py $(B)/capture_records $(T)

$(B)/traffic: tests/vm/traffic.c
	$(call msg,LINK,$@)
	$(Q)$(CC) -std=gnu17 -O2 -D_GNU_SOURCE $(WARN) -static -o $@ $<

$(B)/caps: tests/vm/caps.c
	$(call msg,LINK,$@)
	$(Q)$(CC) -std=gnu17 -O2 -D_GNU_SOURCE $(WARN) -static -o $@ $<

$(B)/tlstraffic: tests/vm/tlstraffic.c
	$(call msg,LINK,$@)
	$(Q)$(CC) -std=gnu17 -O2 -D_GNU_SOURCE $(WARN) -o $@ $< -lssl -lcrypto

check-vm: all $(B)/traffic $(B)/caps $(B)/tlstraffic ## the agent on kernels 5.10 to the newest, in emulated machines
	$(Q)tests/vm/run.sh $(B) $(ARGS) || [ $$? = 77 ]

check-unit: ## unit tests under AddressSanitizer and UBSan, inputs of fuzz targets (T=name: only these); no root
	$(Q)$(MAKE) --no-print-directory CONFIG=asan run-unit
# Those of them that have T in their names; all without T.
pick = $(strip $(foreach t,$(1),$(if $(T),$(if $(findstring $(T),$(notdir $(t))),$(t)),$(t))))
PICKED := $(call pick,$(UNIT) $(FUZZ:%=$(B)/fuzz/%))
run-unit: $(PICKED)
	$(Q)[ -n "$(PICKED)" ] || { echo "no unit test or fuzz target has $(T) in its name" >&2; exit 2; }
	$(Q)rc=0; for t in $(PICKED); do echo "== $$t"; name=$${t##*/}; \
		case $$t in */fuzz/*) set -- tests/fuzz/corpus/$$name tests/fuzz/regress/$$name ;; *) set -- ;; esac; \
		$$t "$$@" || rc=1; done; exit $$rc

# With libFuzzer in CONFIG=fuzz, else a program that runs the files it is given.
ifeq ($(CONFIG),fuzz)
FUZZ_MAIN := -fsanitize=fuzzer
else
FUZZ_MAIN := tests/fuzz/fuzz_main.c
endif
$(B)/fuzz/%: tests/fuzz/fuzz_%.c tests/fuzz/fuzz_main.c $(B)/libringspan.a $(TEST_LIB)
	$(call msg,FUZZ,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) -Itests/lib -Itests/fuzz $(OPT) $(CFLAGS) -MD -MP -MF $@.d $(LDOPT) -o $@ $< $(FUZZ_MAIN) \
		$(TEST_LIB) $(B)/libringspan.a $(LIBS_LD) $(PEER) -lm

check-fuzz: ## every fuzz target for FOR seconds (10), from tests/fuzz/corpus (T=name: only these); no root
	$(Q)$(MAKE) --no-print-directory CONFIG=fuzz run-fuzz
run-fuzz: $(addprefix $(B)/fuzz/,$(call pick,$(FUZZ)))
	$(Q)for t in $(call pick,$(FUZZ)); do \
		mkdir -p build/fuzz-corpus/$$t tests/fuzz/regress/$$t; dict=tests/fuzz/dict/$$t.dict; \
		[ -f $$dict ] && dict=-dict=$$dict || dict=; \
		$(B)/fuzz/$$t -max_total_time=$(or $(FOR),10) -max_len=4096 -verbosity=0 -print_final_stats=1 $$dict \
			-artifact_prefix=build/fuzz-corpus/$$t- build/fuzz-corpus/$$t tests/fuzz/corpus/$$t \
			tests/fuzz/regress/$$t 2>build/fuzz-corpus/$$t.log || { tail -n 40 build/fuzz-corpus/$$t.log; exit 1; }; \
		sed -n "s/^stat::number_of_executed_units: */fuzz $$t: runs /p" build/fuzz-corpus/$$t.log; \
	done; echo "$(words $(call pick,$(FUZZ))) passed, 0 failed, 0 skipped"

# In steps: what pkg-config says is known only after the packages are there.
check: ## install what is missing, then all tests (root; live tests load BPF programs)
	$(Q)deploy/install-deps build test
	$(Q)$(MAKE) --no-print-directory -j"$$(nproc)" all
	$(Q)tests/check
check-golden: all ## event scripts through replay, compared with the expected spans; no root
	$(Q)python3 tests/golden/run.py $(T)
golden-update: all ## rewrite the expected spans of tests/golden; review the diff
	$(Q)python3 tests/golden/run.py --update
check-cli: all ## the command line: bad input, rights, signals (root for most; T=name: only these)
	$(Q)python3 tests/cli/run.py $(T)
check-encoders: all ## encoders against independent decoders, on random spans (T=name: only that check); no root
	$(Q)python3 tests/diff/run.py $(T)
check-arm64: $(B)/bench/encode ## encoders built for arm64 and run by qemu: the same bytes, text as the reference has it; no root
	$(Q)python3 tests/arm64/run.py $< $(VERSION)
check-live: all ## real servers and load, spans compared with the servers' logs (root; T=name: only these)
	$(Q)python3 tests/live/run.py $(T)
GO_RELEASES ?= 1.18.10 1.19.13 1.20.14 1.21.13 1.22.12 1.23.4 1.24.6 1.25.1 1.26.0 1.27.0
check-go: all ## programs of all releases of Go since 1.18, probes attached and detached 100 times (root, network, minutes)
	$(Q)RS_TEST_SECONDS=3600 RS_GO_RELEASES="$(GO_RELEASES)" python3 tests/live/run.py test_go
bench-capture: all ## what capturing costs a real nginx and wrk (root)
	$(Q)python3 bench/capture.py $(ARGS)

bench-tls: all $(B)/bench/uprobes ## what plain text of TLS costs nginx and node, beside the naive probes (root)
	$(Q)python3 bench/tls.py --uprobes $(B)/bench/uprobes $(ARGS)
check-tls: all ## programs of TLS libraries, probes attached and detached 100 times during load (root, minutes)
	$(Q)RS_TEST_SECONDS=3600 RS_TLS_TURNS=100 python3 tests/live/run.py test_tls.Tls
check-rustls: all ## programs with rustls, built by cargo: providers, versions, HTTP/1 and 2 (root, network, minutes)
	$(Q)RS_TEST_SECONDS=3600 RS_RUSTLS=1 python3 tests/live/run.py test_tls_users.Rustls

bench-replay: $(B)/bench/replay ## records through the user-space pipeline: ns per request, allocations; no root
	$(Q)$(B)/bench/replay
	$(Q)$(B)/bench/replay 250000 otlp-json
	$(Q)for i in 1 2 3; do for c in "64 4" "10000 200"; do echo "$$c $$($(B)/bench/replay 200000 otlp-json $$c)"; done; done | \
		awk '{ for (i = 2; i < NF; i++) if ($$i $$(i + 1) $$(i + 2) == "nsperrequest") ns[$$1] += $$(i - 1) } \
		END { printf "%.0f ns per request with 64 connections of 4 processes, %.0f with 10,000 of 200: %.2f times\n", \
		      ns[64] / 3, ns[10000] / 3, ns[10000] / ns[64] }'
check-alloc: $(B)/bench/replay ## the way from record to bytes allocates nothing after warm-up; no root
	$(Q)$(B)/bench/replay 50000
	$(Q)for e in $$(sed -n 's/^RS_ENCODER(.*"\(.*\)").*/\1/p' encoders/encoders.def); do \
		echo "== $$e"; $(B)/bench/replay 50000 $$e 640 40 || exit 1; done
bench-http1: $(B)/bench/http1 ## what parsing HTTP/1 and describing its spans costs: ns per message; no root
	$(Q)$(B)/bench/http1
bench-http2: $(B)/bench/http2 ## HTTP/2: ns per header block beside nghttp2's inflater, per stream at 1 to 100 at once; no root
	$(Q)$(B)/bench/http2
bench-active: $(B)/bench/active ## finding a thread's last active request among 1 to 10,000 open ones; no root
	$(Q)$<
bench-parents: all ## how many parents are right, wrong or none, per program and concurrency (root)
	$(Q)python3 bench/parents.py $(ARGS)
bench-join: all ## two namespaces, two agents, NAT and loss: how many server spans name the right client span (root)
	$(Q)python3 bench/join.py $(ARGS)
bench-node: all $(B)/node_load ## 200 traced processes, 10,000 connections, 20,000 requests/s, beside a small case (root; ARGS="--seconds 15")
	$(Q)python3 bench/node.py $(B)/node_load $(ARGS)
$(B)/node_load: bench/node_load.c
	$(call msg,LINK,$@)
	$(Q)$(CC) -std=gnu17 -O2 -D_GNU_SOURCE $(WARN) -o $@ $<
bench-spanevents: $(B)/bench/spanevents ## dd-trace-java's span events benchmark: ns, bytes, allocations per trace; no root
	$(Q)$<

bench-encode: $(B)/bench/encode ## encoders: ns, bytes, instructions per span, times memcpy, allocations (ARGS=…); no root
	$(Q)python3 bench/encode.py $< time --instructions $(ARGS)
check-instructions: $(B)/bench/encode ## encoders: instructions per span against bench/baseline.tsv; no root
	$(Q)python3 bench/encode.py $< check $(ARGS)
bench-encode-update: $(B)/bench/encode ## rewrite bench/baseline.tsv; review the diff
	$(Q)python3 bench/encode.py $< update $(ARGS)
bench-encode-peers: $(B)/bench/encode ## encoders beside otlp-transformer, dd-trace, JSON, protobuf and MessagePack libraries, as ratios (ARGS=…); no root
	$(Q)python3 bench/peers.py $< $(ARGS)
bench-export: $(B)/bench/export ## spans/s and CPU through encoder, queue and HTTP to a local sink; no root (ARGS=batches)
	$(Q)$(B)/bench/export $(ARGS)
$(B)/bench/%: bench/%.c $(B)/libringspan.a
	$(call msg,BENCH,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) -MMD -MP $(LDOPT) -o $@ $< $(B)/libringspan.a $(LIBS_LD) $(PEER) -lm

# Parsers against parsers written by others. The system's python: h11 is the system's package.
DIFF_PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
$(B)/diff/%: tests/diff/%.c $(B)/libringspan.a $(TEST_LIB)
	$(call msg,DIFF,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) -Itests/lib $(OPT) $(CFLAGS) -MMD -MP $(LDOPT) -o $@ $< $(TEST_LIB) $(B)/libringspan.a $(LIBS_LD) $(PEER) -lm
check-diff: check-diff-http1 check-diff-http2 ## our readings compared with an independent parser's; no root
check-diff-http1: $(B)/diff/http1_dump
	$(Q)$(DIFF_PYTHON) tests/diff/http1.py $(B)/diff/http1_dump
check-diff-http2: $(B)/diff/http2_sessions
	$(Q)$< tests/diff/http2/*.jsonl

# Spans through the exporters, for the tests of tests/receivers and for the bench.
$(B)/feed: tests/receivers/feed.c $(B)/libringspan.a
	$(call msg,LINK,$@)
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) -MMD -MP $(LDOPT) $(LDFLAGS) -o $@ $< $(B)/libringspan.a $(LIBS_LD) -lm

check-export: ## exporters against a scripted server that misbehaves: nothing lost uncounted; no root (T=name)
	$(Q)$(MAKE) --no-print-directory CONFIG=asan build/asan/feed
	$(Q)python3 tests/receivers/check_export.py build/asan/feed $(T)
check-receivers: $(B)/feed ## exporters against a real Collector, Datadog's test agent, strict Sentry checks (network; T=name)
	$(Q)python3 tests/receivers/check_receivers.py $(B)/feed $(T)

# Pods of a node as they come and go, without the agent around it.
$(B)/follow: tests/k8s/follow.c $(B)/libringspan.a
	$(call msg,LINK,$@)
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) -MMD -MP $(LDOPT) $(LDFLAGS) -o $@ $< $(B)/libringspan.a $(LIBS_LD) -lm
check-k8s: ## pods from a stand-in for the API server and kubelet, and all that goes wrong; no root (T=name)
	$(Q)$(MAKE) --no-print-directory CONFIG=asan build/asan/follow
	$(Q)$(MAKE) --no-print-directory $(B)/follow
	$(Q)python3 tests/k8s/check.py build/asan/follow $(or $(T),Follows)
	$(Q)[ -n "$(T)" ] || python3 tests/k8s/check.py $(B)/follow Much
check-k8s-names: all ## what spans say of pods of each kind, on a real Kubernetes (root; RINGSPAN_K8S_NODE: its tool's folder)
	$(Q)tests/k8s/real_node.py

lint-light: $(BPF)/ringspan.bpf.c ## layers, banned calls, what nobody uses, what documents name, header self-sufficiency, record padding, BPF for both architectures
	$(Q)tests/lint/check-layers
	$(Q)tests/lint/check-source
	$(Q)tests/lint/check-used
	$(Q)tests/lint/check-docs
	$(Q)tests/lint/check-headers $(CC) $(BASE)
	$(Q)$(CC) -std=gnu17 -Ibpf -Wpadded -Werror=padded -fsyntax-only tests/lint/padding.c
	$(Q)for a in x86 arm64; do $(CLANG) $(filter-out -D__TARGET_ARCH_% -Ivmlinux/%,$(BPF_CFLAGS)) -D__TARGET_ARCH_$$a \
		-Ivmlinux/$$a -Werror -fsyntax-only $(BPF)/ringspan.bpf.c || exit 1; done
lint: lint-light fmt-check ## lint-light, formatting, shellcheck
	$(Q)git ls-files | xargs grep -lE '^#!/bin/(ba)?sh' | xargs shellcheck

deps: ## install what the build needs (root)
	$(Q)deploy/install-deps build
deps-test: ## install what the build and the tests need (root)
	$(Q)deploy/install-deps build test

run: ## install what is missing, build, and trace this node live (root; ARGS=…)
	$(Q)deploy/install-deps build
	$(Q)$(MAKE) --no-print-directory -j"$$(nproc)" all
	$(Q)build/ringspan trace $(ARGS)

# Versions of clang-format differ in what they make of the same rules: one is pinned.
CLANG_FORMAT ?= $(firstword $(wildcard /usr/bin/clang-format-14) clang-format)
C_FILES = $(shell git ls-files '*.c' '*.h' | grep -v '^vmlinux/')
fmt: ## format all C
	$(Q)$(CLANG_FORMAT) -i $(C_FILES)
fmt-check: ## is all C formatted? (clang-format 14)
	$(Q)if $(CLANG_FORMAT) --version | grep -q 'version 14\.'; then $(CLANG_FORMAT) --dry-run -Werror $(C_FILES); \
	else echo "skipped: fmt-check wants clang-format 14"; fi

vmlinux: ## generate vmlinux/$(ARCH)/vmlinux.h from a kernel image: IMAGE=vmlinuz (see vmlinux/README.md)
	$(Q)test -n "$(IMAGE)" || { echo "make vmlinux: say IMAGE=path/to/vmlinuz [ARCH=x86|arm64]" >&2; exit 2; }
	$(Q)mkdir -p build vmlinux/$(ARCH)
	$(Q)vmlinux/extract-btf $(IMAGE) build/kernel.btf
	$(Q)$(BPFTOOL) btf dump file build/kernel.btf format c > vmlinux/$(ARCH)/vmlinux.h
	$(Q)sha256sum vmlinux/$(ARCH)/vmlinux.h

install: all ## binary, manual page, completion, systemd unit to DESTDIR/PREFIX; /etc/ringspan.yaml if there is none
	$(Q)install -D -m 755 build/ringspan $(DESTDIR)$(PREFIX)/bin/ringspan
	$(Q)install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		$(DESTDIR)$(PREFIX)/lib/systemd/system
	$(Q)build/ringspan help man > $(DESTDIR)$(PREFIX)/share/man/man1/ringspan.1
	$(Q)build/ringspan help bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/ringspan
	$(Q)sed 's|@PREFIX@|$(PREFIX)|' deploy/systemd/ringspan.service \
		> $(DESTDIR)$(PREFIX)/lib/systemd/system/ringspan.service
	$(Q)install -d $(DESTDIR)$(PREFIX)/share/doc/ringspan
	$(Q)build/ringspan config --sample > $(DESTDIR)$(PREFIX)/share/doc/ringspan/ringspan.yaml
	$(Q)[ -e $(DESTDIR)/etc/ringspan.yaml ] || install -D -m 640 $(DESTDIR)$(PREFIX)/share/doc/ringspan/ringspan.yaml \
		$(DESTDIR)/etc/ringspan.yaml

# The image and the package need no engine and no debhelper.
IMAGE ?= ringspan:$(VERSION)
image: all ## container image: build/ringspan-image.tar (IMAGE=NAME:TAG)
	$(Q)rm -rf build/rootfs && deploy/image/rootfs build/ringspan build/rootfs
	$(Q)deploy/image/oci build/ringspan-image.tar $(IMAGE) build/rootfs $(VERSION)
DEB_ARCH = $(shell dpkg --print-architecture 2>/dev/null)
deb: all ## Debian package: build/ringspan_VERSION_ARCH.deb
	$(Q)rm -rf build/deb
	$(Q)$(MAKE) --no-print-directory install DESTDIR=build/deb PREFIX=/usr
	$(Q)deploy/deb/build build/deb $(VERSION) build/ringspan_$(VERSION)_$(DEB_ARCH).deb
check-deploy: all ## chart, manifests, image, package, unit, examples, without a cluster (T=name)
	$(Q)$(DIFF_PYTHON) tests/deploy/check_deploy.py $(T)
# Programs of others, from Go modules: an OpenTelemetry Collector, the Datadog agent's tracing half.
build/collector: $(wildcard tests/collector/*)
	$(call msg,GO,$@)
	$(Q)cd tests/collector && go build -trimpath -buildvcs=false -ldflags '-s -w' -o $(CURDIR)/$@ .
build/traceagent: $(wildcard tests/deploy/traceagent/* tests/deploy/traceagent/*/*)
	$(call msg,GO,$@)
	$(Q)cd tests/deploy/traceagent && go build -trimpath -buildvcs=false -ldflags '-s -w' -o $(CURDIR)/$@ .
check-containerfile: all ## the Containerfile by buildah, its image compared with `make image` (root, network, minutes)
	$(Q)tests/deploy/check_containerfile.sh || [ $$? = 77 ]
# The image on a real one-node Kubernetes.
$(B)/app: tests/deploy/app.c
	$(call msg,LINK,$@)
	$(Q)$(CC) -std=gnu17 -O2 -D_GNU_SOURCE $(WARN) -static -s -o $@ $<
check-k8s-node: $(B)/app ## the image, started by the chart, on a real Kubernetes (root; RINGSPAN_K8S_NODE: its tool's folder)
	$(Q)$(MAKE) --no-print-directory image IMAGE=localhost/ringspan:check
	$(Q)tests/deploy/run_k8s.sh build/ringspan-image.tar $(B)/app $(T) || [ $$? = 77 ]
HELM ?= helm
manifests: ## deploy/kubernetes/base/ringspan.yaml from the chart (HELM=helm), the seccomp profile from syscalls.def
	$(Q)deploy/seccomp/render > build/seccomp.json && cp build/seccomp.json deploy/seccomp/ringspan.json
	$(Q)deploy/kubernetes/render $(HELM) > build/manifests.yaml && cp build/manifests.yaml deploy/kubernetes/base/ringspan.yaml

clean: ## remove build/
	rm -rf build

-include $(shell find build -name '*.d' 2>/dev/null)
