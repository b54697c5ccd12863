# Test programs and scripts: which exist, how they are built, and the targets that run them. Included by the Makefile.

# ---- Tests mirror the layers; programs and scripts print TAP, see tests/run ----

TEST_LAYERS := $(libptcp_LAYERS) $(plan_LAYERS) queue input cli
fuzz_TESTS  := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz_BINS   := $(fuzz_TESTS:%=$(BUILD)/tests/fuzz/test_%)
test_BINS   := $(patsubst %.c,$(BUILD)/%,$(foreach l,$(TEST_LAYERS),$(wildcard tests/$(l)/test_*.c))) \
	$(fuzz_BINS)
test_SCRIPTS := tests/test_run tests/layers tests/shape tests/docs tests/prose tests/shell tests/mutants/test_places \
	$(filter-out %.c %.h,$(wildcard $(foreach f,abi e2e hostile campaign trees,tests/$(f)/test_*))) \
	$(addprefix tests/bench/advice/test_,report campaign_report campaign_steps)
test_HELPERS := $(patsubst %,$(BUILD)/tests/e2e/%,jsonget silent unable launch patience)
test_LIBRARIES := $(patsubst %,$(BUILD)/tests/e2e/%.so,other_clock slow names nocase sendfile no_direct late late_close deaf owners unfair busy fails dies)
test_PROGRAMS := $(patsubst %,$(BUILD)/tests/%,hostile/hostile campaign/chaos bench/advice/report \
	bench/advice/campaign_report e2e/spool trees/odd engine/replay)
test_NEEDS = $(test_BINS) $(test_HELPERS) $(test_LIBRARIES) $(test_PROGRAMS)
PLAN_TEST_LIBS := -lglpk # has no pkg-config file; others load it, see src/plan/glpk_calls.h

# ---- Building

# Unit tests run once after they were compiled, and most spend their time in the libraries: these are not optimized.
# (In the recipe: a variable of these targets would make them known to make, which then prefers the general rule to
# link them.) Tests of model, engine and plan simulate.
TEST_CFLAGS ?= $(patsubst -O%,-O0,$(CFLAGS)) -U_FORTIFY_SOURCE
test_OBJS   := $(test_BINS:=.o)
plain_OBJS  := $(filter-out $(foreach l,model engine plan,$(BUILD)/tests/$(l)/%),$(test_OBJS))

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/libptcp.a
	$(Q)$(link) $(call pc_libs,$(LIB_PC) $(TEST_PC)) $(test_LIBS) -lm

# Unit tests share one library of all sources except main(). The library exports all symbols: a test that defines a function
# of another source replaces the function. After a change of sources the library is linked again, and no test.
units_LIB  := $(BUILD)/tests/libunits.so
units_PC   := $(LIB_PC) $(PLAN_PC) $(TOOL_PC)
wrap_BINS  := $(patsubst %,$(BUILD)/tests/%/test_torture,engine store) # the linker replaces malloc(): needs the archive
units_BINS := $(filter-out $(wrap_BINS) $(fuzz_BINS),$(test_BINS))

$(units_LIB): $(libptcp_OBJS) $(plan_OBJS) $(filter-out %/main.o,$(cli_OBJS)) $(BUILD)/sources
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		$(call pc_libs,$(units_PC)) -lm

$(units_BINS): %: %.o | $(units_LIB)
	$(units_link)
$(fuzz_BINS): $(BUILD)/tests/fuzz/test_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/feed.o | $(units_LIB)
	$(units_link)
# 200 programs are linked, each in a third of the time that GNU ld takes, where there is a faster linker for native programs.
fast_LD := $(if $(filter cc gcc clang,$(notdir $(CC))),$(addprefix -fuse-ld=,$(firstword $(foreach l,lld gold,$(if $(shell \
	command -v ld.$(l)),$(l))))))
units_link = $(Q)$(link) $(fast_LD) $(units_LIB) -Wl,-rpath,'$$ORIGIN/..' $(call pc_libs,$(units_PC) $(TEST_PC)) $(test_LIBS) -lm

# Additional objects of some tests: fixtures, a solver, failing allocations, a fake library.
$(filter $(BUILD)/tests/store/%,$(test_BINS)) $(patsubst %,$(BUILD)/tests/fs/test_%,dir xattr quota excluded file_system room): $(patsubst %,$(BUILD)/tests/store/%.o,fixture offer power)
$(filter $(BUILD)/tests/stream/%,$(test_BINS)): $(patsubst %,$(BUILD)/tests/%.o,stream/fixture store/fixture)
$(patsubst %,$(BUILD)/tests/session/test_%,session request_flags adapt probe_session stream_connect stream_set control) \
$(BUILD)/tests/work/test_work $(BUILD)/tests/measure/test_timing: \
	$(patsubst %,$(BUILD)/tests/%.o,session/fixture store/fixture)
$(filter $(BUILD)/tests/server/%,$(test_BINS)): $(patsubst %,$(BUILD)/tests/%.o,server/fixture store/fixture)
$(BUILD)/tests/work/test_work_streams: $(BUILD)/tests/store/fixture.o
$(BUILD)/tests/store/test_hash_dispatch: $(BUILD)/src/store/hash_dispatch.o
engine_WORLD := $(patsubst %,$(BUILD)/tests/engine/%.o,world world_lines world_match world_store world_again world_tape one player player_lines)
$(filter $(BUILD)/tests/engine/%,$(test_BINS)): $(engine_WORLD)
$(BUILD)/tests/engine/replay: $(patsubst %,$(BUILD)/tests/engine/%.o,player player_lines)
$(filter $(BUILD)/tests/net/%,$(test_BINS)) $(patsubst %,$(BUILD)/tests/%,core/test_fd core/test_local_sock conn/test_connect \
	conn/test_inbound server/test_port_share mover/test_movers mover/test_launch): $(BUILD)/tests/net/fixture.o
$(patsubst %,$(BUILD)/tests/%,api/test_api api/test_public_options api/test_rates measure/test_measure \
	client/test_remote_query client/test_task_trust client/test_ssh_start client/test_task): \
	$(BUILD)/tests/api/fixture.o
$(filter $(BUILD)/tests/client/%,$(filter-out %/test_ssh_connect,$(test_BINS))): $(BUILD)/tests/client/fixture.o
$(wrap_BINS): our_LDFLAGS += \
	$(foreach f,malloc calloc realloc strdup strndup,-Wl,--wrap=$(f))

$(BUILD)/tests/bench/advice/report: $(patsubst %,$(BUILD)/tests/bench/advice/%.o,cases score)
$(BUILD)/tests/bench/advice/campaign_report: $(patsubst %,$(BUILD)/tests/bench/advice/%.o,records replay seed_score)
$(BUILD)/tests/bench/advice/campaign_report: test_LIBS = $(call pc_libs,jansson)

$(patsubst %,$(BUILD)/tests/model/test_%,overlay_paths bound): $(BUILD)/tests/model/bound.o
$(patsubst %,$(BUILD)/tests/model/test_%,auto deadline recalled stream_group): $(BUILD)/tests/model/drawn_path.o
$(BUILD)/tests/model/test_path_limit: $(BUILD)/tests/model/packet_path.o $(patsubst %,$(BUILD)/tests/lab/%.o,link red rng)

multipath_OBJS := $(BUILD)/tests/bench/multipath/study.o $(BUILD)/tests/bench/multipath/optimum.o
$(BUILD)/tests/model/test_study $(BUILD)/tests/bench/multipath/report: $(multipath_OBJS)
$(BUILD)/tests/engine/test_path_trials $(BUILD)/tests/bench/multipath/report: \
	$(patsubst %,$(BUILD)/tests/bench/multipath/%.o,candidates candidates_cases)
$(BUILD)/tests/model/test_study $(BUILD)/tests/model/test_bound \
$(BUILD)/tests/bench/multipath/report: test_LIBS := -lglpk

plan_PLAIN := $(patsubst %,$(BUILD)/tests/plan/%.o,instance plain)
plan_RULE = $(Q)$(link) $(call pc_libs,$(PLAN_PC)) $(PLAN_TEST_LIBS) -lm
$(filter $(BUILD)/tests/plan/%,$(test_BINS)) $(BUILD)/tests/plan/long: $(BUILD)/tests/plan/compare.o $(plan_PLAIN)
$(filter $(BUILD)/tests/plan/%,$(test_BINS)): test_LIBS := $(PLAN_TEST_LIBS)
$(BUILD)/tests/plan/long: $(BUILD)/tests/plan/long.o $(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	$(plan_RULE)
$(BUILD)/tests/collect/test_links: $(BUILD)/tests/api/fixture.o
collect_STUDY := $(patsubst %,$(BUILD)/tests/bench/collect/%.o,study execute)
$(BUILD)/tests/collect/test_study: $(collect_STUDY)
$(BUILD)/tests/bench/collect/report: $(BUILD)/tests/bench/collect/report.o $(collect_STUDY) \
		$(BUILD)/tests/bench/collect/measured.o $(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	$(plan_RULE)
$(BUILD)/tests/bench/plan/bench.o: our_CFLAGS += -Itests/plan
$(BUILD)/tests/bench/plan/bench: $(BUILD)/tests/bench/plan/bench.o $(plan_PLAIN) \
		$(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	$(plan_RULE)

$(filter $(BUILD)/tests/cli/%,$(test_BINS)): $(patsubst %,$(BUILD)/tests/cli/%.o,fake_ptcp capture)

# Objects of fuzz targets: all sources except main().
fuzz_OBJS  = $(patsubst %,$(BUILD)/tests/fuzz/%.o,owner scratch)
fuzz_NEEDS = $(fuzz_OBJS) $(filter-out %/main.o,$(cli_OBJS)) \
	$(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
fuzz_WRAPS = clock_gettime getpid getsockopt uv_timer_start __sanitizer_cov_trace_cmp8 __sanitizer_cov_trace_const_cmp8
fuzz_LIBS  = $(call pc_libs,$(units_PC)) -lm

$(test_HELPERS): $(BUILD)/tests/e2e/%: $(BUILD)/tests/e2e/%.o
	$(Q)$(link) $(call pc_libs,jansson)

# Preloaded by tests, into programs with or without sanitizers.
$(test_LIBRARIES): $(BUILD)/tests/e2e/%.so: tests/e2e/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -fPIC $(CFLAGS) $(LDFLAGS) -o $@ $< -ldl

$(BUILD)/tests/hostile/hostile: $(patsubst %,$(BUILD)/tests/hostile/%.o, \
	session basis client between movers links cleaning files grants greedy memory steering strangers served server sources doers keeper local local_user peer)
$(BUILD)/tests/campaign/chaos: $(patsubst %,$(BUILD)/tests/campaign/%.o,plan way)

# --------------------------------------------------------------- Testing

# make check: build and run all tests; T=core/units: only tests with this text in their names
named_T = $(if $(T),$(foreach p,$(1),$(if $(findstring $(T),$(p) $(subst /test_,/,$(p))),$(p))),$(1))
check: setup
	$(Q)mkdir -p $(BUILD) && date +%s >$(BUILD)/began
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(call named_T,$(test_BINS)) \
		$(if $(call named_T,$(test_SCRIPTS)),all $(filter-out $(test_BINS),$(test_NEEDS)))
	$(Q)BUILD_S=$$(($$(date +%s) - $$(cat $(BUILD)/began))) BUILD=$(BUILD) T='$(T)' SAN='$(SAN)' CC='$(CC)' tests/run $(test_EARLY) \
		$(filter-out $(test_EARLY),$(test_SCRIPTS) $(test_BINS))

# The longest tests begin first, but laboratories do not run side by side; short programs, which compute, come last.
test_EARLY = $(patsubst %,tests/%,lab/test_overlay.sh lab/test_weather.sh e2e/test_ssh campaign/test_crowd \
	hostile/test_collect hostile/test_jobs lab/test_collect.sh e2e/test_watch hostile/test_steering \
	hostile/test_hostile hostile/test_between lab/test_advise.sh e2e/test_collect e2e/test_resume e2e/test_third \
	e2e/test_spool e2e/test_via lab/test_lab.sh) \
	$(patsubst %,$(BUILD)/tests/%,engine/test_worlds api/test_rates plan/test_random model/test_auto model/test_auto_movers)

# make check-fast: in about a minute, after the build, all unit tests, and the scripts that touch what changed
# since the branch left main, or since SINCE=commit (tests/changed)
.PHONY: check-fast
check-fast: setup
	$(Q)mkdir -p $(BUILD) && date +%s >$(BUILD)/began
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all $(test_NEEDS)
	$(Q)scripts=$$(tests/changed $(SINCE)) && BUILD_S=$$(($$(date +%s) - $$(cat $(BUILD)/began))) BUILD=$(BUILD) \
		SAN='$(SAN)' CC='$(CC)' tests/run $$scripts $(test_BINS)

# make check-sanitized: run the unit tests, and hostile tests of files, cleaning and greed, with the sanitizers of
# addresses and undefined behavior; make check-long runs all tests with them
sanitized_SCRIPTS := $(patsubst %,tests/hostile/test_%,cleaning files greedy)
.PHONY: check-sanitized
check-sanitized:
	$(Q)$(MAKE) --no-print-directory check SAN=address,undefined test_EARLY= test_SCRIPTS='$(sanitized_SCRIPTS)'

# make check-suites: let others judge: compilers with -Werror, the headers of musl, linters of packages, alerts and containers,
# fsspec's own tests, the wheel of Python, adapters with the packages of their other sides, sanitizers, and formats on s390x;
# what is not installed is skipped by name (contrib/setup --suites)
test_SUITES := $(patsubst %,tests/suites/%,lints compilers posix python apps wheel adapters sanitizers s390x)
.PHONY: check-suites sources objects
check-suites: setup
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all $(test_HELPERS) $(BUILD)/tests/e2e/owners.so
	$(Q)BUILD=$(BUILD) JOBS=1 TEST_TIMEOUT=3600 T='$(T)' CC='$(CC)' tests/run $(test_SUITES)

sources: $(libptcp_OBJS) $(plan_OBJS) $(cli_OBJS)
objects: sources $(addsuffix .o,$(filter-out $(fuzz_BINS),$(test_BINS)) $(fuzz_TESTS:%=$(BUILD)/tests/fuzz/fuzz_%) \
	$(test_HELPERS) $(test_PROGRAMS))

# make check-long: run the suites of check-suites, campaigns, then all tests and the campaigns with sanitizers; takes hours
# Plans 10,000 random overlays and compares hundreds with plain formulations, kills transfers 400 times and
# disturbs 500, takes 200 through rough weather, sends a million files, floods a server with unauthenticated
# connections, compares advice with measured throughput, and prints the results. Then the same and all of make check, in its long form, with the
# sanitizers of addresses and undefined behavior, and of threads. SAN=thread: only with these sanitizers.
long_TESTS = $(BUILD)/tests/plan/long $(addprefix tests/,$(addprefix campaign/test_,kills changed movers chaos bounds crowd) \
	$(addprefix hostile/test_,hostile local memory swaps strangers) \
	$(addsuffix .sh,$(addprefix lab/test_,advise auto policer congestion yield striping links shared twopaths relays sources collect weather site)) \
	bench/advice/test_campaign trees/test_differential)
long_ALL = $(long_TESTS) $(if $(SAN),$(filter-out $(long_TESTS),$(test_SCRIPTS) $(test_BINS)))
.PHONY: check-long check-long-once
check-long: setup
	$(Q)failed=0; $(if $(SAN),,$(MAKE) --no-print-directory check-suites || failed=1;) for san in $(if $(SAN),'$(SAN)','' address,undefined thread); do \
		echo "$${san:+with sanitizers: }$${san:-without sanitizers}"; \
		$(MAKE) --no-print-directory check-long-once SAN="$$san" || failed=1; \
	done; exit $$failed

check-long-once:
	$(Q)$(MAKE) --no-print-directory -j2 all $(BUILD)/tests/plan/long $(test_HELPERS) $(test_PROGRAMS) \
		$(if $(SAN),$(test_NEEDS))
	$(Q)LONG=1 TEST_TIMEOUT=$(if $(SAN),21600,7200) BUILD=$(BUILD) T='$(T)' SAN='$(SAN)' CC='$(CC)' tests/run $(long_ALL)

# make check-mutants: leave out each refusal of the sources, and each check of tests/mutants/checks, one at a time: a named
# test must fail
.PHONY: check-mutants
check-mutants: setup
	$(Q)T='$(T)' tests/mutants/run

# make attacks: print the tests of each class of attacks in SECURITY.md
.PHONY: attacks
attacks:
	$(Q)tests/attacks

# make check-slurm: install Slurm and Open MPI, and run striped transfers with a Slurm of three hosts (root; Debian)
.PHONY: check-slurm
check-slurm:
	$(Q)contrib/setup --slurm
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all $(test_HELPERS)
	$(Q)BUILD=$(BUILD) SAN='$(SAN)' tests/run tests/lab/test_slurm.sh

# make fuzz FUZZ_S=60 FUZZ="wire glob": run these fuzz targets (default: all) for 60 s each; needs clang
# FUZZ_RUNS=1: a fixed number of executions of each, about 10 s, the same ones each time; FUZZ_RUNS=6: six times as many.
# New inputs stay in build-fuzz; an input that revealed an error belongs in tests/fuzz/seeds, which make check feeds
# to the same targets.
FUZZ    := $(fuzz_TESTS)
FUZZ_S  ?= 60
FUZZ_RUNS ?=
FUZZ_SEED ?= 1
FUZZ_CC ?= clang
.PHONY: fuzz fuzz-seeds

fuzz:
	@command -v $(FUZZ_CC) >/dev/null || { echo "make fuzz: no $(FUZZ_CC) here; install clang" \
		"with its libFuzzer (Debian: contrib/setup --fuzz) or set FUZZ_CC" >&2; exit 1; }
	$(Q)$(MAKE) --no-print-directory BUILD=build-fuzz CC='$(FUZZ_CC)' CFLAGS='-O1 -g -fno-sanitize-coverage=stack-depth' \
		SAN=fuzzer-no-link,address,undefined $(FUZZ:%=build-fuzz/fuzz_%)
	$(Q)FUZZ_S=$(FUZZ_S) FUZZ_RUNS=$(FUZZ_RUNS) FUZZ_SEED=$(FUZZ_SEED) tests/fuzz/run $(FUZZ)

$(BUILD)/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/repeat.o $(fuzz_NEEDS)
	$(Q)$(link) -fsanitize=fuzzer $(fuzz_WRAPS:%=-Wl,--wrap=%) $(fuzz_LIBS)

$(fuzz_BINS): $(fuzz_OBJS)

fuzz-seeds: $(BUILD)/tests/fuzz/seeds_wire
	$(Q)$< tests/fuzz/seeds/wire
