# ptcp: `make demo` shows it, `make check` tests it, `make help` lists the rest.

PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
MANDIR  ?= $(PREFIX)/share/man
PKG_CONFIG ?= pkg-config
INSTALL ?= install
CFLAGS  ?= -O2 -g
VERSION := 0.1.0

# make check SAN=address,undefined and SAN=thread build in folders of their own.
SAN ?=
comma := ,
BUILD := build$(if $(filter-out cc gcc,$(notdir $(CC))),-$(notdir $(CC)))$(if $(SAN),-$(firstword $(subst $(comma), ,$(SAN))))
Q := $(if $(V),,@)

# ---- What there is, layer by layer; arrows never turn back (tests/layers) ----

core_SRC  := err buf text log units clock
wire_SRC  := frame start entry
xfer_SRC  := outbox flight sender sender_blocks sender_frames receiver receiver_frames session
store_SRC := sys fail dir hash walk source part sink entry place io
net_SRC   := loop identity trust tls chan sock
lib_SRC   := opts target keys host intake stream stream_send stream_recv party joining sending receiving \
	client guest served server
libptcp_LAYERS := core wire xfer store net lib
plan_LAYERS :=
cli_SRC   := main command options exit process terminal talk connect trust output out_text \
	out_json transfer cmd_send cmd_recv cmd_serve cmd_key cmd_version

TESTS := core/test_units core/test_buf core/test_text core/test_list core/test_err core/test_clock \
	wire/test_frame wire/test_start wire/test_entry \
	store/test_dir store/test_hash store/test_io store/test_walk store/test_source \
	store/test_sink store/test_entry store/test_race store/test_torture
TESTS += xfer/test_worlds xfer/test_states xfer/test_session xfer/test_sender xfer/test_receiver \
	xfer/test_torture
TESTS += cli/test_options cli/test_output cli/test_command
test_SCRIPTS := tests/layers tests/docs
e2e_SCRIPTS  := tests/e2e/test_cli tests/e2e/test_send_recv tests/e2e/test_trust \
	tests/e2e/test_failures

# ------------------------------------------------------------- Compiling

LIB_PC  := libuv libssl libcrypto libxxhash
PLAN_PC :=
TOOL_PC := jansson
TEST_PC := cmocka

our_CFLAGS := -std=c11 -D_GNU_SOURCE -DPTCP_VERSION='"$(VERSION)"' -Iinclude -Isrc -pthread \
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -fno-common \
	-fvisibility=hidden $(if $(WERROR),-Werror) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
our_LDFLAGS := -pthread $(if $(SAN),-fsanitize=$(SAN))
pc_cflags = $(shell $(PKG_CONFIG) --cflags $(1) 2>/dev/null)
pc_libs   = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)

layer_objs = $(foreach l,$(1),$(patsubst %,$(BUILD)/src/$(l)/%.o,$($(l)_SRC)))
lib_OBJS  := $(call layer_objs,$(libptcp_LAYERS))
plan_OBJS := $(call layer_objs,$(plan_LAYERS))
cli_OBJS  := $(call layer_objs,cli)
test_BINS := $(patsubst %,$(BUILD)/tests/%,$(TESTS))
# The tool needs the library whole; so do the tests that run it.
tool      := $(if $(filter lib,$(libptcp_LAYERS)),$(BUILD)/ptcp)
test_SCRIPTS += $(if $(tool),$(e2e_SCRIPTS))
test_HELPERS := $(BUILD)/tests/e2e/jsonget $(BUILD)/tests/e2e/silent

.DEFAULT_GOAL := all
.PHONY: all check clean demo fuzz fuzz-seeds help install setup uninstall bench-hash bench-small FORCE
.SECONDARY:

all: $(BUILD)/libptcp.a $(tool)

$(BUILD)/libptcp.a: $(lib_OBJS)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC  $<")
	$(Q)$(CC) $(our_CFLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/libptcp.a
	$(Q)$(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(call pc_libs,$(LIB_PC) $(TEST_PC)) -lm

$(filter $(BUILD)/tests/store/%,$(test_BINS)): $(BUILD)/tests/store/fixture.o
xfer_WORLD := $(patsubst %,$(BUILD)/tests/xfer/%.o,world world_lines world_store one)
$(filter $(BUILD)/tests/xfer/%,$(test_BINS)): $(xfer_WORLD)
$(BUILD)/tests/xfer/test_torture: our_LDFLAGS += $(foreach f,malloc calloc realloc,-Wl,--wrap=$(f))
$(BUILD)/tests/store/test_torture: our_LDFLAGS += $(foreach f,malloc calloc realloc strdup strndup,-Wl,--wrap=$(f))

# The tool's parts against a fake of the library.
$(BUILD)/tests/cli/test_%: $(BUILD)/tests/cli/test_%.o $(BUILD)/tests/cli/fake_ptcp.o \
		$(BUILD)/tests/cli/capture.o \
		$(filter-out %/main.o,$(cli_OBJS)) $(BUILD)/libptcp.a
	$(Q)$(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(call pc_libs,$(TOOL_PC) $(TEST_PC)) -lm

$(test_HELPERS): $(BUILD)/tests/e2e/%: $(BUILD)/tests/e2e/%.o
	$(Q)$(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(call pc_libs,jansson)

$(BUILD)/ptcp: $(cli_OBJS) $(BUILD)/libptcp.a
	$(Q)$(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(call pc_libs,$(LIB_PC) $(TOOL_PC)) -lm

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

# ---------------------------------------------------- Showing, installing

# make demo sends a tree over loopback and back, and compares.
demo: setup
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)BUILD='$(BUILD)' contrib/demo

# make install puts the tool, its manual, the library and its headers below PREFIX.
MAN_PAGES := $(patsubst %,man/%.1,ptcp ptcp-serve ptcp-send ptcp-recv ptcp-key)
HEADERS   := include/ptcp/ptcp.h include/ptcp/err.h
INCLUDEDIR ?= $(PREFIX)/include
LIBDIR     ?= $(PREFIX)/lib

install: all
	$(INSTALL) -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(LIBDIR) \
		$(DESTDIR)$(INCLUDEDIR)/ptcp
	$(INSTALL) -m 755 $(tool) $(DESTDIR)$(BINDIR)
	$(INSTALL) -m 644 $(MAN_PAGES) $(DESTDIR)$(MANDIR)/man1
	$(INSTALL) -m 644 $(BUILD)/libptcp.a $(DESTDIR)$(LIBDIR)
	$(INSTALL) -m 644 $(HEADERS) $(DESTDIR)$(INCLUDEDIR)/ptcp

# make uninstall removes what install put there.
uninstall:
	rm -f $(DESTDIR)$(BINDIR)/ptcp $(DESTDIR)$(LIBDIR)/libptcp.a \
		$(MAN_PAGES:man/%=$(DESTDIR)$(MANDIR)/man1/%) \
		$(HEADERS:include/%=$(DESTDIR)$(INCLUDEDIR)/%)
	-rmdir $(DESTDIR)$(INCLUDEDIR)/ptcp

# --------------------------------------------------------------- Testing

# make check T=core/units runs the tests whose name contains that.
check: setup
	$(Q)$(MAKE) --no-print-directory -j2 all $(test_BINS) $(test_HELPERS)
	$(Q)BUILD=$(BUILD) T='$(T)' SAN='$(SAN)' tests/run $(test_BINS) $(test_SCRIPTS)

# make fuzz FUZZ_S=60 runs each fuzz target so long on its seeds (needs clang and its libFuzzer).
# What it learns stays in build-fuzz; an input that found something belongs in tests/fuzz/seeds.
FUZZ    := wire
FUZZ_S  ?= 60
FUZZ_CC ?= clang
fuzz_BINS := $(patsubst %,build-fuzz/fuzz_%,$(FUZZ))
fuzz_SRC  := $(foreach l,core wire,$(patsubst %,src/$(l)/%.c,$($(l)_SRC)))

fuzz: $(fuzz_BINS)
	$(Q)set -e; for t in $(FUZZ); do \
		mkdir -p build-fuzz/corpus/$$t build-fuzz/found; \
		build-fuzz/fuzz_$$t -max_total_time=$(FUZZ_S) -timeout=10 -max_len=70000 -verbosity=0 \
			-print_final_stats=1 -artifact_prefix=build-fuzz/found/ \
			build-fuzz/corpus/$$t tests/fuzz/seeds/$$t; \
	done

$(fuzz_BINS): build-fuzz/%: tests/fuzz/%.c $(fuzz_SRC) FORCE
	@command -v $(FUZZ_CC) >/dev/null || { echo "make fuzz: no $(FUZZ_CC) here; install clang" \
		"with its libFuzzer (Debian: clang libclang-rt-dev) or set FUZZ_CC" >&2; exit 1; }
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(our_CFLAGS) -O1 -g -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=all -o $@ $(filter %.c,$^)

fuzz-seeds: $(BUILD)/tests/fuzz/seeds_wire
	$(Q)$< tests/fuzz/seeds/wire

# make bench-hash, bench-small: the store's own tricks beside the plain way.
bench-hash bench-small: bench-%: $(BUILD)/tests/bench/bench_%
	$(Q)$< $(ARGS)

setup:
	$(Q)contrib/setup

clean:
	rm -rf build build-*

help:
	@sed -n 's/^# \(make [a-z]*.*\)/\1/p' Makefile
