# ptcp: `make demo` demonstrates ptcp, `make check` runs the tests, `make help` lists all targets.

VERSION := 0.1.0
SOVERSION := 0

PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR  ?= $(PREFIX)/share/man
UNITDIR ?= $(PREFIX)/lib/systemd/system
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
PKG_CONFIG ?= pkg-config
INSTALL ?= install
OBJCOPY ?= objcopy
CFLAGS  ?= -O2 -g

# make check SAN=address,undefined (or SAN=thread): run tests with sanitizers, in a separate build folder
SAN ?=
comma := ,
BUILD := build$(if $(filter-out cc gcc,$(notdir $(CC))),-$(notdir $(CC)))$(if \
	$(SAN),-$(firstword $(subst $(comma), ,$(SAN))))
Q := $(if $(V),,@)

.DEFAULT_GOAL := all
.PHONY: all check clean demo help install setup uninstall FORCE
.SECONDARY:

# ---- Sources by layer; includes and calls never go to a higher layer (tests/layers) ----

core_SRC  := err text log buf memory_budget units pacer timetable bitmap glob selection name_set atomic_file trusted_file userdir local_sock thread processor
wire_SRC  := frame fields codec attrs outbox
model_SRC := stats probe fit regress evidence belief belief_predict congestion yield advice advice_mixture settle disjoint turns \
	shared impact_budget stream_path stream_control history divide paths ratectl multipath placement
fs_SRC    := sys fs_err fd_budget io direct_io pipe_io excluded dir dir_open quota xattr
store_SRC := destination walk source source_digest hash sink direct part leftover manage prune expand \
	journal resume resume_verify commit beginning entry owner pipe_source pipe_sink write_once shared
net_SRC   := loop mailbox watch sock reach resolve dial listen admission line_reader child spool splice splice_spool bridge relay_acl \
	identity tls chan chan_tls chan_io handshake trust/certificate trust/trust_lines trust/trust trust/known_hosts trust/revoked
engine_SRC := engine handshake dispatch timeouts inflight frame_reader job_frames \
	sender sender_blocks sender_streams sender_holes sender_regions sender_unsized sender_frames receiver receiver_blocks \
	control_replay dead_path mtu path_select path_rates stream_count host_load
conn_SRC  := context remote paths connect grants ssh_hello client_hello inbound start_args
stream_SRC := stream balance send generate recv write memory open_files
mover_SRC := invitation deal link movers pool launch start remote remote_receive remote_relays process work work_files work_streams work_targets
session_SRC := session striping engine_ops control stream_set progress mux stream_connect stalls adapt congestion congestion_choice yielding tcp_report \
	hardlinks linked_files endpoints send send_list send_io send_remove select receive receive_names receive_io receive_links receive_movers \
	receive_prune pipe verify_queue probe_session
measure_SRC := advice advise measure timing prober
client_SRC := task task_rate transfer trust connect path_history task_session measure_task remote_job \
	remote_job_request remote_query clean_task manage_task ssh_start ssh_install ssh_connect striping history_file retry wait pipe
server_SRC := server server_opts admit session_queue server_session session_wait request request_find confine_needs relay relay_room \
	job job_session job_conn file_job cleaning managing managing_change link_table ssh_server port_share port_lease own_dirs quota_table striping
api_SRC   := certificate clean local mover
conf_SRC  := yaml fields settings overlay overlay_links edit
plan_SRC  := overlay quickest graph streams streams_best sandbox glpk_load time_grid lp lp_solve lp_start flow_paths pieces coordinated \
	pipelined baselines infeasible verify plan rate_limits
collect_SRC := local_host links links_measure links_watch links_query links_file schedule candidates drift \
	shared_cause others impact source planner_thread allocate monitor collect
cli_SRC   := main command options lists process log_opts confine connect install overlay transfer mover_opts exec cmd_clean cmd_serve running running_find cmd_rate \
	serve_opts serve_metrics link_monitor cmd_key cmd_mover cmd_status cmd_advise cmd_measure cmd_plan cmd_collect \
	cmd_paths cmd_links cmd_files skeleton/cmd_overlay skeleton/hosts skeleton/ask doctor/cmd_doctor doctor/first doctor/host doctor/movers doctor/path show/json show/links_output \
	show/output show/plan_output show/plan_plot show/plot show/terminal
libptcp_LAYERS := core wire model fs store net engine conn stream mover session measure client server api
plan_LAYERS    := conf plan collect

LIB_PC  := libuv libssl libcrypto libxxhash
PLAN_PC := yaml-0.1
PLAN_TEST_LIBS := -lglpk # has no pkg-config file; others load it, see src/plan/glpk_calls.h
TOOL_PC := jansson
TEST_PC := cmocka

# ---- Tests mirror the layers; programs and scripts print TAP, see tests/run ----

core_TESTS  := err log text list buf memory_budget units clock pacer timetable bitmap glob atomic_file trusted_file userdir local_sock thread processor
wire_TESTS  := frame handshake entry attrs job link mover
model_TESTS := rng stats probe fit regress evidence congestion yield advice impact_budget settle disjoint turns shared \
	stream_control auto auto_movers history divide paths bound ratectl multipath study placement
fs_TESTS    := fd_budget io dir xattr
store_TESTS := excluded destination walk source hash hash_dispatch sink direct pipe journal resume race commit \
	entry owner write_once quota leftover manage prune expand shared faults power torture
net_TESTS   := loop mailbox sock reach resolve dial listen admission line_reader child spool splice bridge relay_acl \
	identity certificate known_hosts trust tls chan handshake
engine_TESTS := engine early inflight outages job_frames states sender sender_streams sender_regions sender_holes unsized receiver \
	receiver_blocks hardlinks \
	measuring worlds recorded torture control_replay dead_path mtu path_select path_trials path_rates stream_count host_load
conn_TESTS  := remote paths connect grants client_hello inbound
stream_TESTS := balance
mover_TESTS := deal invitation work_files remote_relays
session_TESTS := mux endpoints hardlinks linked_files control stream_connect stream_set adapt path_rates
measure_TESTS := advice measure timing
client_TESTS := history_file remote_query
server_TESTS := session_queue relay_room port_share
api_TESTS   := api options
conf_TESTS  := yaml settings overlay edit
plan_TESTS  := no_glpk plan verify sandbox random streams quickest rate_limits
collect_TESTS := schedule drift shared_cause others planner_thread candidates monitor study links links_watch
cli_TESTS   := options suggest skeleton output command confine cmd_plan cmd_advise cmd_measure doctor
fuzz_TESTS  := wire connect hello session jobs state trust overlay settings glob text place options
TEST_LAYERS := core wire model fs store net engine conn stream mover session measure client server api conf plan collect cli fuzz
test_SCRIPTS := tests/test_run tests/layers tests/docs tests/prose tests/abi/test_abi \
	$(addprefix tests/e2e/test_,install package rpm static python documents cli demo intro \
	send_recv direct striping striping_receive striping_server striping_via launchers everyday stdio trees kept resume failures interrupt clean files disk ssh ssh_install share via third clocks rate \
	running trust certificates write_once quota confine service doctor advise auto plan paths links watch overlay relays spool \
	host_load collect) \
	$(addprefix tests/hostile/test_,hostile greedy memory between movers links cleaning files steering jobs collect swaps strangers) \
	$(addprefix tests/campaign/test_,kills movers chaos link outages bounds crowd) \
	$(addprefix tests/bench/advice/test_,report campaign_report campaign_steps)
test_HELPERS := $(patsubst %,$(BUILD)/tests/e2e/%,jsonget silent unable launch patience)
test_LIBRARIES := $(patsubst %,$(BUILD)/tests/e2e/%.so,other_clock slow names sendfile no_direct late deaf)
test_PROGRAMS := $(patsubst %,$(BUILD)/tests/%,hostile/hostile campaign/chaos bench/advice/report \
	bench/advice/campaign_report e2e/spool)

# ------------------------------------------------------------- Compiling

our_CFLAGS := -std=c11 -D_GNU_SOURCE -DPTCP_VERSION='"$(VERSION)"' -Iinclude -Isrc -Itests -pthread \
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -fno-common \
	-fPIC -fvisibility=hidden $(if $(WERROR),-Werror) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
our_LDFLAGS := -pthread $(if $(SAN),-fsanitize=$(SAN))
pc_libs = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)
link    = $(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^)

layer_objs = $(foreach l,$(1),$(patsubst %,$(BUILD)/src/$(l)/%.o,$($(l)_SRC)))
cli_OBJS  := $(call layer_objs,cli)
test_BINS := $(foreach l,$(TEST_LAYERS),$(patsubst %,$(BUILD)/tests/$(l)/test_%,$($(l)_TESTS)))
test_NEEDS = $(test_BINS) $(test_HELPERS) $(test_LIBRARIES) $(test_PROGRAMS)

all: $(BUILD)/ptcp shared

$(BUILD)/libptcp.a: $(call layer_objs,$(libptcp_LAYERS))
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/libptcp-plan.a: $(call layer_objs,$(plan_LAYERS))
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# Internal layers of libptcp that are also linked into libptcp-plan.
$(BUILD)/libinside.a: $(call layer_objs,core model)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# Shared libraries export the symbols in their maps. libptcp-plan contains its own copy of core and model. Lookups of
# names may outlive a handle, so the code stays loaded (nodelete).
LIB_SO  := libptcp.so libptcp-plan.so
.PHONY: shared
shared: $(LIB_SO:%=$(BUILD)/%)

shared_link = $(Q)$(CC) -shared -Wl,-soname,$(@F).$(SOVERSION) -Wl,-z,nodelete -Wl,--version-script=$(filter %.map,$^) \
	-Wl,--no-undefined $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@.$(SOVERSION) $(filter %.o,$^) \
	$(filter %.so %.a,$^) $(1) && ln -sf $(@F).$(SOVERSION) $@

$(BUILD)/libptcp.so: src/api/libptcp.map $(call layer_objs,$(libptcp_LAYERS))
	$(call shared_link,$(call pc_libs,$(LIB_PC)) -lm)

$(BUILD)/libptcp-plan.so: src/plan/libptcp-plan.map $(call layer_objs,$(plan_LAYERS)) $(BUILD)/libptcp.so \
		$(BUILD)/libinside.a
	$(call shared_link,$(call pc_libs,$(PLAN_PC)) -lm)

# Static libraries to install: one object each, with only the public symbols global.
static_link = $(Q)mkdir -p $(@D) && $(LD) -r -o $(@:.a=.o) $(filter %.o,$^) $(filter %.a,$^) && \
	$(OBJCOPY) -w $(foreach s,$(1),--keep-global-symbol='$(s)') $(@:.a=.o) && \
	rm -f $@ && $(AR) rcs $@ $(@:.a=.o)

$(BUILD)/installed/libptcp.a: $(call layer_objs,$(libptcp_LAYERS))
	$(call static_link,ptcp_*)

$(BUILD)/installed/libptcp-plan.a: $(call layer_objs,$(plan_LAYERS)) $(BUILD)/libinside.a
	$(call static_link,ptcp_collect_* ptcp_links_* ptcp_overlay_* ptcp_paths_* ptcp_plan_*)

$(BUILD)/ptcp: $(cli_OBJS) $(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	$(Q)$(link) $(call pc_libs,$(LIB_PC) $(PLAN_PC) $(TOOL_PC)) -lm

# make static: build one executable without shared libraries, BUILD/static/ptcp, for any Linux of this architecture
# pkg-config names neither the static libraries of GLPK's dependencies nor Debian's name of libuv's. The linker warns
# about each lookup of names: src/net/name_services.c is the answer, so its output is shown after a failure only.
STATIC_LIBS ?= -l:libuv_a.a -lssl -lcrypto -lxxhash -lyaml -ljansson -lglpk -lamd -lcolamd -lsuitesparseconfig \
	-lltdl -lz -lgmp
STATIC := $(BUILD)/static/ptcp
.PHONY: static
static: $(STATIC)

$(STATIC): $(cli_OBJS) $(patsubst %,$(BUILD)/src/%.o,net/name_services store/hash_dispatch plan/glpk_linked) \
		$(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	@mkdir -p $(@D)
	$(Q)$(link) -static-pie -s $(STATIC_LIBS) -lm >$@.log 2>&1 || { cat $@.log >&2; exit 1; }

# Unit tests run once after they were compiled, and spend their time in the libraries: they are not optimized. (In the recipe:
# a variable of these targets would make them known to make, which then prefers the general rule to link them.)
TEST_CFLAGS ?= $(patsubst -O%,-O0,$(CFLAGS)) -U_FORTIFY_SOURCE
test_OBJS := $(test_BINS:=.o)

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC  $<")
	$(Q)$(CC) $(our_CFLAGS) $(CPPFLAGS) $(if $(filter $@,$(test_OBJS)),$(TEST_CFLAGS),$(CFLAGS)) -MMD -MP -c -o $@ $<

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/libptcp.a
	$(Q)$(link) $(call pc_libs,$(LIB_PC) $(TEST_PC)) $(test_LIBS) -lm

include tests/lab/lab.mk

-include $(shell find $(BUILD) -type f -name '*.d' 2>/dev/null)

# Additional objects of some tests: fixtures, a solver, failing allocations, a fake library.
$(filter $(BUILD)/tests/store/%,$(test_BINS)) $(BUILD)/tests/fs/test_dir $(BUILD)/tests/fs/test_xattr: $(patsubst %,$(BUILD)/tests/store/%.o,fixture offer power)
$(BUILD)/tests/store/test_hash_dispatch: $(BUILD)/src/store/hash_dispatch.o
engine_WORLD := $(patsubst %,$(BUILD)/tests/engine/%.o,world world_lines world_store world_again world_tape one)
$(filter $(BUILD)/tests/engine/%,$(test_BINS)): $(engine_WORLD)
$(filter $(BUILD)/tests/net/%,$(test_BINS)) $(patsubst %,$(BUILD)/tests/%,core/test_local_sock conn/test_connect \
	conn/test_inbound server/test_port_share measure/test_timing): $(BUILD)/tests/net/fixture.o
$(patsubst %,$(BUILD)/tests/%,api/test_api api/test_options session/test_path_rates measure/test_measure client/test_remote_query): \
	$(BUILD)/tests/api/fixture.o
$(BUILD)/tests/engine/test_torture $(BUILD)/tests/store/test_torture: our_LDFLAGS += \
	$(foreach f,malloc calloc realloc strdup strndup,-Wl,--wrap=$(f))

$(BUILD)/tests/bench/advice/report: $(patsubst %,$(BUILD)/tests/bench/advice/%.o,cases score)
$(BUILD)/tests/bench/advice/campaign_report: $(patsubst %,$(BUILD)/tests/bench/advice/%.o,records replay seed_score)
$(BUILD)/tests/bench/advice/campaign_report: test_LIBS := $(call pc_libs,jansson)

$(patsubst %,$(BUILD)/tests/model/test_%,paths bound): $(BUILD)/tests/model/bound.o

multipath_OBJS := $(BUILD)/tests/bench/multipath/study.o $(BUILD)/tests/bench/multipath/optimum.o
$(BUILD)/tests/model/test_study $(BUILD)/tests/bench/multipath/report: $(multipath_OBJS)
$(BUILD)/tests/engine/test_path_trials $(BUILD)/tests/bench/multipath/report: \
	$(patsubst %,$(BUILD)/tests/bench/multipath/%.o,candidates candidates_cases)
$(BUILD)/tests/model/test_study $(BUILD)/tests/model/test_bound \
$(BUILD)/tests/bench/multipath/report: test_LIBS := -lglpk

# Tools of the tests of plan, and the objects that they link in addition to libptcp.
plan_RULE = $(Q)$(link) $(call pc_libs,$(PLAN_PC) $(TEST_PC)) $(PLAN_TEST_LIBS) -lm
plan_PLAIN := $(patsubst %,$(BUILD)/tests/plan/%.o,instance plain)
$(BUILD)/tests/conf/%: $(BUILD)/tests/conf/%.o $(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	$(plan_RULE)
$(BUILD)/tests/collect/%: $(BUILD)/tests/collect/%.o $(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	$(Q)$(link) $(call pc_libs,$(LIB_PC) $(PLAN_PC) $(TEST_PC)) -lm
$(BUILD)/tests/plan/%: $(BUILD)/tests/plan/%.o $(BUILD)/tests/plan/compare.o $(plan_PLAIN) \
		$(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
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

$(BUILD)/tests/cli/test_%: $(BUILD)/tests/cli/test_%.o $(BUILD)/tests/cli/fake_ptcp.o \
		$(BUILD)/tests/cli/capture.o $(filter-out %/main.o,$(cli_OBJS)) $(BUILD)/libptcp-plan.a \
		$(BUILD)/libptcp.a
	$(Q)$(link) $(call pc_libs,$(PLAN_PC) $(TOOL_PC) $(TEST_PC)) -lm

# Objects of fuzz targets: all sources except main().
fuzz_NEEDS = $(patsubst %,$(BUILD)/tests/fuzz/%.o,owner scratch) $(filter-out %/main.o,$(cli_OBJS)) \
	$(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
fuzz_LIBS  = $(call pc_libs,$(LIB_PC) $(PLAN_PC) $(TOOL_PC)) -lm

$(test_HELPERS): $(BUILD)/tests/e2e/%: $(BUILD)/tests/e2e/%.o
	$(Q)$(link) $(call pc_libs,jansson)

# Preloaded by tests, into programs with or without sanitizers.
$(test_LIBRARIES): $(BUILD)/tests/e2e/%.so: tests/e2e/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -fPIC $(CFLAGS) $(LDFLAGS) -o $@ $< -ldl

$(BUILD)/tests/hostile/hostile: $(patsubst %,$(BUILD)/tests/hostile/%.o, \
	session client between movers links cleaning files grants greedy memory steering strangers served server sources doers keeper local peer)
$(BUILD)/tests/campaign/chaos: $(patsubst %,$(BUILD)/tests/campaign/%.o,plan way)

# -------------------------------------------------- Demonstrating, installing

# make demo: send a tree over loopback and back, and compare
demo: setup
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)BUILD='$(BUILD)' contrib/demo

# make install: install tool, manual, completions, units, libraries and headers below PREFIX, and prepare the service
# Packages set DESTDIR, a prefix of all paths, and prepare the host themselves.
MAN_PAGES := $(wildcard man/*.[1-8])
HEADERS   := $(patsubst %,include/ptcp/%.h,ptcp plan progress err)
LIB_A     := $(patsubst %,$(BUILD)/installed/%.a,libptcp libptcp-plan)
PC_FILES  := libptcp.pc libptcp-plan.pc
# Files from contrib, with their destinations: service units contain the path of the tool, and are generated.
EXTRAS    := systemd/ptcp.service.in:$(UNITDIR)/ptcp.service systemd/ptcp.socket:$(UNITDIR)/ptcp.socket \
	systemd/user/ptcp.service.in:$(PREFIX)/lib/systemd/user/ptcp.service \
	systemd/ptcp.sysusers:$(PREFIX)/lib/sysusers.d/ptcp.conf \
	systemd/ptcp.tmpfiles:$(PREFIX)/lib/tmpfiles.d/ptcp.conf \
	completions/ptcp.bash:$(BASHDIR)/ptcp completions/_ptcp:$(ZSHDIR)/_ptcp \
	completions/ptcp.fish:$(FISHDIR)/ptcp.fish
extra_from = contrib/$(firstword $(subst :, ,$(1)))
extra_to   = $(DESTDIR)$(lastword $(subst :, ,$(1)))
man_of    = $(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(1)))/$(notdir $(1))
# A page of section 3 describes several functions: each function gets a page that refers to the common page.
man_links = $(foreach f,$(filter-out $(basename $(notdir $(1))),\
	$(shell sed -n '/^\.Sh SYNOPSIS/q; s/^\.Nm \(ptcp_[a-z0-9_]*\).*/\1/p' $(1))),$(1):$(f).3)

install: all $(LIB_A)
	$(INSTALL) -d $(DESTDIR)$(BINDIR) $(sort $(dir $(foreach m,$(MAN_PAGES),$(call man_of,$(m))))) \
		$(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR)/ptcp \
		$(sort $(foreach x,$(EXTRAS),$(dir $(call extra_to,$(x)))))
	$(INSTALL) -m 755 $(BUILD)/ptcp $(DESTDIR)$(BINDIR)
	$(Q)$(foreach m,$(MAN_PAGES),$(INSTALL) -m 644 $(m) $(call man_of,$(m)) &&) true
	$(Q)$(foreach l,$(foreach m,$(filter %.3,$(MAN_PAGES)),$(call man_links,$(m))),echo '.so \
		man3/$(notdir $(firstword $(subst :, ,$(l))))' \
		>$(call man_of,$(lastword $(subst :, ,$(l)))) &&) true
	$(INSTALL) -m 644 $(LIB_A) $(DESTDIR)$(LIBDIR)
	$(INSTALL) -m 755 $(LIB_SO:%=$(BUILD)/%.$(SOVERSION)) $(DESTDIR)$(LIBDIR)
	$(Q)$(foreach l,$(LIB_SO),ln -sf $(l).$(SOVERSION) $(DESTDIR)$(LIBDIR)/$(l) &&) true
	$(INSTALL) -m 644 $(HEADERS) $(DESTDIR)$(INCLUDEDIR)/ptcp
	$(Q)$(foreach f,$(PC_FILES),sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|' contrib/pkg/$(f).in \
		>$(DESTDIR)$(LIBDIR)/pkgconfig/$(f) &&) true
	$(Q)$(foreach x,$(EXTRAS), \
		sed 's|@BINDIR@|$(BINDIR)|' $(call extra_from,$(x)) >$(call extra_to,$(x)) && \
		chmod 644 $(call extra_to,$(x)) &&) true
ifdef DESTDIR
	$(INSTALL) -d $(DESTDIR)/etc/ptcp
	$(INSTALL) -m 644 contrib/config.yaml $(SETTINGS)
else
	$(Q)VERSION='$(VERSION)' PREFIX='$(PREFIX)' BINDIR='$(BINDIR)' LIBDIR='$(LIBDIR)' UNITDIR='$(UNITDIR)' \
		contrib/finish-install
endif

# make uninstall: remove the installed files; user, identity, changed settings and served files remain
SETTINGS  = $(DESTDIR)/etc/ptcp/config.yaml
uninstall:
	rm -f $(DESTDIR)$(BINDIR)/ptcp $(HEADERS:include/%=$(DESTDIR)$(INCLUDEDIR)/%) \
		$(foreach m,$(MAN_PAGES),$(call man_of,$(m)) \
		$(foreach l,$(if $(filter %.3,$(m)),$(call man_links,$(m))), \
		$(call man_of,$(lastword $(subst :, ,$(l)))))) \
		$(foreach l,libptcp libptcp-plan, \
		$(patsubst %,$(DESTDIR)$(LIBDIR)/$(l).%,a so so.$(SOVERSION))) \
		$(PC_FILES:%=$(DESTDIR)$(LIBDIR)/pkgconfig/%) $(foreach x,$(EXTRAS),$(call extra_to,$(x)))
	-rmdir $(DESTDIR)$(INCLUDEDIR)/ptcp
	$(Q)! cmp -s contrib/config.yaml $(SETTINGS) || rm -f $(SETTINGS)

# make dist: pack the committed sources (without git: all sources) into ptcp-VERSION.tar.gz, and the static executable
# with manual, completions and an install script into ptcp-VERSION-linux-x86_64.tar.gz, reproducibly
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y Makefile)
export SOURCE_DATE_EPOCH
DIST := ptcp-$(VERSION)
.PHONY: dist dist-sources dist-static deb rpm oci release
dist: dist-sources dist-static

dist-sources:
	$(Q)contrib/dist $(DIST) $(BUILD)

dist-static: $(STATIC)
	$(Q)contrib/dist-static $(DIST)-linux-$(shell uname -m) $(BUILD) $(STATIC)

# make deb: build Debian packages in build/deb
deb: dist-sources
	$(Q)contrib/deb $(DIST) $(BUILD)

# make rpm: build RPM packages in build/rpm; ARGS=--nodeps: without a database of the required packages
rpm: dist-sources
	$(Q)contrib/rpm/build $(DIST) $(BUILD) $(ARGS)

# make oci: build a container image of the server, with podman, buildah or docker
oci:
	$(Q)contrib/oci/build ptcp:$(VERSION)

# make release: compare version numbers, run tests, build packages, and print the checklist of a release
release:
	$(Q)contrib/release $(VERSION) $(BUILD)

# --------------------------------------------------------------- Testing

# make check: build and run all tests; T=core/units: only tests with this text in their names
named_T = $(if $(T),$(foreach p,$(1),$(if $(findstring $(T),$(p) $(subst /test_,/,$(p))),$(p))),$(1))
check: setup
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all $(call named_T,$(test_BINS)) \
		$(if $(call named_T,$(test_SCRIPTS)),$(filter-out $(test_BINS),$(test_NEEDS)))
	$(Q)BUILD=$(BUILD) T='$(T)' SAN='$(SAN)' CC='$(CC)' tests/run $(test_EARLY) \
		$(filter-out $(test_EARLY),$(test_SCRIPTS) $(test_BINS))

# The longest tests begin first, but laboratories do not run side by side; short programs, which compute, come last.
test_EARLY = $(patsubst %,tests/%,lab/test_overlay.sh lab/test_weather.sh e2e/test_ssh campaign/test_crowd \
	hostile/test_collect hostile/test_jobs lab/test_collect.sh e2e/test_watch hostile/test_steering \
	hostile/test_hostile hostile/test_between lab/test_advise.sh e2e/test_collect e2e/test_resume e2e/test_third \
	e2e/test_spool e2e/test_via lab/test_lab.sh) $(BUILD)/tests/engine/test_worlds

# make check-long: run campaigns, then all tests and the campaigns with sanitizers; takes hours
# Plans 10,000 random overlays and compares hundreds with plain formulations, kills transfers 300 times and
# disturbs 500, takes 200 through rough weather, sends a million files, floods a server with unauthenticated
# connections, compares advice with measured throughput, and prints the results. Then the same and all of make check, in its long form, with the
# sanitizers of addresses and undefined behavior, and of threads. SAN=thread: only with these sanitizers.
long_TESTS = $(BUILD)/tests/plan/long $(addprefix tests/,$(addprefix campaign/test_,kills movers chaos bounds crowd) \
	$(addprefix hostile/test_,hostile memory swaps strangers) \
	$(addsuffix .sh,$(addprefix lab/test_,advise auto congestion yield striping links shared twopaths relays sources collect weather site)) \
	bench/advice/test_campaign)
long_ALL = $(long_TESTS) $(if $(SAN),$(filter-out $(long_TESTS),$(test_SCRIPTS) $(test_BINS)))
.PHONY: check-long check-long-once
check-long: setup
	$(Q)failed=0; for san in $(if $(SAN),'$(SAN)','' address,undefined thread); do \
		echo "$${san:+with sanitizers: }$${san:-without sanitizers}"; \
		$(MAKE) --no-print-directory check-long-once SAN="$$san" || failed=1; \
	done; exit $$failed

check-long-once:
	$(Q)$(MAKE) --no-print-directory -j2 all $(BUILD)/tests/plan/long $(test_HELPERS) $(test_PROGRAMS) \
		$(if $(SAN),$(test_NEEDS))
	$(Q)LONG=1 TEST_TIMEOUT=$(if $(SAN),21600,7200) BUILD=$(BUILD) T='$(T)' SAN='$(SAN)' CC='$(CC)' tests/run $(long_ALL)

# make check-mutants: remove each security check of SECURITY.md, one at a time; the test named there must fail
.PHONY: check-mutants
check-mutants: setup
	$(Q)$(MAKE) -s -j$(shell nproc) all $(test_NEEDS)
	$(Q)BUILD=$(BUILD) T='$(T)' tests/mutants/run

# make check-slurm: install Slurm and Open MPI, and run striped transfers with a Slurm of three hosts (root; Debian)
.PHONY: check-slurm
check-slurm:
	$(Q)contrib/setup --slurm
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all $(test_HELPERS)
	$(Q)BUILD=$(BUILD) SAN='$(SAN)' tests/run tests/lab/test_slurm.sh

# make fuzz FUZZ_S=60 FUZZ="wire glob": run these fuzz targets (default: all) for 60 s each; needs clang
# New inputs stay in build-fuzz; an input that revealed an error belongs in tests/fuzz/seeds, which make check feeds
# to the same targets.
FUZZ    := $(fuzz_TESTS)
FUZZ_S  ?= 60
FUZZ_SEED ?=
FUZZ_CC ?= clang
.PHONY: fuzz fuzz-seeds

fuzz:
	@command -v $(FUZZ_CC) >/dev/null || { echo "make fuzz: no $(FUZZ_CC) here; install clang" \
		"with its libFuzzer (Debian: contrib/setup --fuzz) or set FUZZ_CC" >&2; exit 1; }
	$(Q)$(MAKE) --no-print-directory BUILD=build-fuzz CC='$(FUZZ_CC)' CFLAGS='-O1 -g' \
		SAN=fuzzer-no-link,address,undefined $(FUZZ:%=build-fuzz/fuzz_%)
	$(Q)FUZZ_S=$(FUZZ_S) FUZZ_SEED=$(FUZZ_SEED) tests/fuzz/run $(FUZZ)

$(BUILD)/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(fuzz_NEEDS)
	$(Q)$(link) -fsanitize=fuzzer $(fuzz_LIBS)

$(BUILD)/tests/fuzz/test_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/feed.o $(fuzz_NEEDS)
	$(Q)$(link) $(fuzz_LIBS)

fuzz-seeds: $(BUILD)/tests/fuzz/seeds_wire
	$(Q)$< tests/fuzz/seeds/wire

# ------------------------------------------------------------- Measuring

# make bench-hash, bench-small, bench-chan: compare optimizations with plain code (tests/bench/README.md)
# make bench-engine: measure the time of the engine for each block, also of striped transfers
.PHONY: bench-engine bench-hash bench-small bench-chan multipath-report
bench-engine bench-hash bench-small bench-chan: bench-%: $(BUILD)/tests/bench/bench_%
	$(Q)$< $(ARGS)

bench-engine: bench-movers
.PHONY: bench-movers
bench-movers: all $(BUILD)/tests/bench/bench_movers
	$(Q)BUILD='$(BUILD)' tests/bench/movers

# make bench-quick: compare ptcp with its peers and with the limit, in about a minute
# make bench: the same with more data, rounds and numbers of streams, and a real disk
# Settings such as ROUNDS and SIZE: see tests/bench/peers.
.PHONY: bench bench-quick
bench_HELPERS := $(BUILD)/tests/bench/meter $(BUILD)/tests/bench/limit

bench: export ROUNDS ?= 5
bench: export SIZE ?= 2GiB
bench: ARGS ?= large streams small start disk
bench bench-quick: all $(bench_HELPERS)
	$(Q)BUILD='$(BUILD)' tests/bench/peers $(ARGS)

$(bench_HELPERS) $(BUILD)/tests/bench/trips: $(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o
	$(Q)$(link)

# make bench-trips: count the round trips of small transfers in a laboratory (root)
.PHONY: bench-trips
bench-trips: all lab-programs $(BUILD)/tests/bench/trips
	$(Q)BUILD='$(BUILD)' tests/bench/trips $(ARGS)

# make bench-slow: measure the goodput over storage with latency
.PHONY: bench-slow
bench-slow: all $(BUILD)/tests/e2e/slow.so $(BUILD)/tests/e2e/patience
	$(Q)BUILD='$(BUILD)' tests/bench/slow

# make bench-direct: compare direct I/O with the page cache, from disk to disk
.PHONY: bench-direct
bench-direct: all $(BUILD)/tests/bench/meter $(BUILD)/tests/e2e/patience
	$(Q)BUILD='$(BUILD)' tests/bench/direct

# make bench-relay: measure the CPU time of a relay, compared with a decrypting proxy
.PHONY: bench-relay
bench-relay: all $(BUILD)/tests/bench/proxy
	$(Q)BUILD='$(BUILD)' tests/bench/relay

# make plan-bench: measure the time of planning, compared with the plain formulation
.PHONY: plan-bench
plan-bench: setup
	$(Q)$(MAKE) --no-print-directory -j2 all $(BUILD)/tests/bench/plan/bench
	$(Q)$(BUILD)/tests/bench/plan/bench

# make plan-report: compare plans and recorded executions with the published study (a minute of CPU time)
# make plan-pictures: draw the report
# make collect-lab: record executions in the laboratory (an hour, root)
.PHONY: plan-report plan-pictures collect-lab
plan-report: $(BUILD)/tests/bench/collect/report
	$(Q)$< $(ARGS) tests/bench/collect/lab.csv tests/bench/collect/naive.csv

plan-pictures: $(BUILD)/tests/bench/collect/report
	$(Q)BUILD='$(BUILD)' tests/bench/collect/pictures

collect-lab: all lab-programs $(BUILD)/tests/e2e/jsonget $(BUILD)/tests/bench/collect/report
	$(Q)BUILD='$(BUILD)' OUT='$(or $(OUT),$(BUILD)/collect-lab.csv)' tests/bench/collect/lab
	$(Q)$(BUILD)/tests/bench/collect/report -m '$(or $(OUT),$(BUILD)/collect-lab.csv)'

# make advice-truth: measure true throughput and impact in laboratories (hours, root)
# Settings: see tests/bench/advice/truth.
.PHONY: advice-truth advice-report advice-pictures advice-witness advice-steered
advice-truth: lab-programs
	$(Q)BUILD='$(BUILD)' tests/bench/advice/truth

# make advice-report: score advice against the recorded truth
advice-report: $(BUILD)/tests/bench/advice/report
	$(Q)$< tests/bench/advice/truth.csv

advice-pictures: $(BUILD)/tests/bench/advice/report
	$(Q)BUILD='$(BUILD)' tests/bench/advice/pictures

# make advice-campaign: measure truth, advice and transfers on random paths (hours, root)
# Settings: see tests/bench/advice/campaign. Report: make campaign-report, OUT as there
.PHONY: advice-campaign campaign-report
advice-campaign: all lab-programs $(BUILD)/tests/e2e/jsonget
	$(Q)BUILD='$(BUILD)' tests/bench/advice/campaign

campaign-report: $(BUILD)/tests/bench/advice/campaign_report
	$(Q)$< $(wildcard $(or $(OUT),$(BUILD)/advice-campaign)/*/*.jsonl)

# make advice-witness: measure the impact of advice and of an advised transfer externally (five minutes, root)
advice-witness: all lab-programs $(BUILD)/tests/e2e/jsonget
	$(Q)BUILD='$(BUILD)' tests/bench/advice/witness

# make advice-steered: compare --streams auto with fixed numbers of streams (an hour, root)
advice-steered: all lab-programs $(BUILD)/tests/e2e/jsonget
	$(Q)BUILD='$(BUILD)' tests/bench/advice/steered

# make multipath-report: compare the multipath rate controller with the published study
multipath-report: $(BUILD)/tests/bench/multipath/report
	$(Q)$<

# ------------------------------------------------------------------------

# make man/ptcp-messages.7: generate the page of messages from the sources and man/messages.txt
man/ptcp-messages.7: FORCE
	$(Q)contrib/messages page >$@.new && mv $@.new $@

setup:
	$(Q)contrib/setup

clean:
	rm -rf build build-*

help:
	@sed -n 's/^# \(make [a-z]*.*\)/\1/p' Makefile tests/lab/lab.mk
