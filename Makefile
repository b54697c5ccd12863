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
BUILD := build$(if $(filter-out cc gcc,$(notdir $(CC))),-$(notdir $(CC)))$(if $(SAN),-$(firstword $(subst $(comma), ,$(SAN))))
comma := ,
Q := $(if $(V),,@)

# ---- What there is, layer by layer; arrows never turn back (tests/layers) ----

core_SRC  := err units clock
conf_SRC  := yaml fields overlay overlay_links
plan_SRC  := overlay net grid run lp lp_solve pieces trace courses why fair fluid slots \
	build verify plan
libptcp_LAYERS := core
plan_LAYERS := conf plan
cli_SRC   := cmd_plan plan_text plan_json plan_plot

TESTS := core/test_units conf/test_yaml conf/test_overlay plan/test_plan plan/test_verify plan/test_run plan/test_random \
	cli/test_cmd_plan

# ------------------------------------------------------------- Compiling

LIB_PC  := libuv libssl libcrypto libxxhash
PLAN_PC := yaml-0.1
PLAN_LIBS := -lglpk
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

.DEFAULT_GOAL := all
.PHONY: all check check-long clean plan-bench help setup
.SECONDARY:

all: $(BUILD)/libptcp.a $(BUILD)/libptcp-plan.a

$(BUILD)/libptcp.a: $(lib_OBJS)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/libptcp-plan.a: $(plan_OBJS)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC  $<")
	$(Q)$(CC) $(our_CFLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/libptcp.a
	$(Q)$(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(call pc_libs,$(LIB_PC) $(TEST_PC)) -lm

plan_LINK = $(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) \
	$(call pc_libs,$(PLAN_PC) $(TEST_PC)) $(PLAN_LIBS) -lm

$(BUILD)/tests/conf/%: $(BUILD)/tests/conf/%.o $(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	$(Q)$(plan_LINK)
$(BUILD)/tests/cli/%: $(BUILD)/tests/cli/%.o $(cli_OBJS) $(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	$(Q)$(plan_LINK) $(call pc_libs,$(TOOL_PC))
$(BUILD)/tests/bench/plan/bench.o: our_CFLAGS += -Itests/plan
$(BUILD)/tests/plan/%: $(BUILD)/tests/plan/%.o \
		$(addprefix $(BUILD)/tests/plan/,compare.o instance.o plain.o) \
		$(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	$(Q)$(plan_LINK)
$(BUILD)/tests/bench/plan/bench: $(addprefix $(BUILD)/tests/,bench/plan/bench.o \
		plan/instance.o plan/plain.o) $(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	$(Q)$(plan_LINK)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

# --------------------------------------------------------------- Testing

# make check T=core/units runs the tests whose name contains that.
check: setup
	$(Q)$(MAKE) --no-print-directory -j2 all $(test_BINS)
	$(Q)BUILD=$(BUILD) T='$(T)' SAN='$(SAN)' tests/run $(test_BINS)

# make check-long plans 10,000 random overlays and compares hundreds with plain formulations.
check-long: setup
	$(Q)$(MAKE) --no-print-directory -j2 all $(BUILD)/tests/plan/long
	$(Q)TEST_TIMEOUT=7200 BUILD=$(BUILD) T= SAN='$(SAN)' tests/run $(BUILD)/tests/plan/long

# make plan-bench measures planning beside the plain formulation.
plan-bench: setup
	$(Q)$(MAKE) --no-print-directory -j2 all $(BUILD)/tests/bench/plan/bench
	$(Q)$(BUILD)/tests/bench/plan/bench

setup:
	$(Q)contrib/setup

clean:
	rm -rf build build-*

help:
	@sed -n 's/^# \(make [a-z]*.*\)/\1/p' Makefile
