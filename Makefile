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
# make WITHOUT_PLAN=1: neither plans nor collections, and nothing of GLPK, so that MIT is the license of the whole; with
# all and static
WITHOUT_PLAN ?=
# make POSIX=1: files through the calls of POSIX alone, as on a system that is not Linux (src/fs/sys_posix.c)
POSIX ?=
comma := ,
BUILD := build$(if $(filter-out cc gcc,$(notdir $(CC))),-$(notdir $(CC)))$(if \
	$(SAN),-$(firstword $(subst $(comma), ,$(SAN))))$(if $(WITHOUT_PLAN),-without-plan)$(if $(POSIX),-posix)
Q := $(if $(V),,@)

.DEFAULT_GOAL := all
.PHONY: all check clean demo help install setup uninstall FORCE
.SECONDARY:

# ---- Sources: each .c file of a layer; includes and calls never go to a higher layer (tests/layers) ----

libptcp_LAYERS := core wire model sums fs store net engine conn stream mover work session measure client server api
plan_LAYERS    := conf plan collect
# Parts of the static executable only: they define symbols that libptcp takes from shared libraries.
static_SRC     := $(patsubst %,src/%.c,net/name_services store/hash_dispatch plan/glpk_linked)
absent_SRC     := src/plan/glpk_absent.c
# The table of system calls of the other kind of systems.
other_SRC      := src/fs/sys_$(if $(POSIX),linux,posix).c

LIB_PC  := libuv libssl libcrypto libxxhash libzstd
PLAN_PC := yaml-0.1
TOOL_PC := jansson
TEST_PC := cmocka

# ------------------------------------------------------------- Compiling

# pc_CFLAGS: flags of all libraries. A missing library stops only targets that need the library, and is named.
pc_CFLAGS := $(shell for m in $(LIB_PC) $(PLAN_PC) $(TOOL_PC) $(TEST_PC); do \
	$(PKG_CONFIG) --cflags $$m 2>/dev/null || echo missing=$$m; done)
missing := $(patsubst missing=%,%,$(filter missing=%,$(pc_CFLAGS)))
need_pc = $(if $(filter $(missing),$(1)),$(error $(PKG_CONFIG) does not find $(filter $(missing),$(1)): \
	run contrib/setup, or name the folder of its .pc file in PKG_CONFIG_PATH))
pc_libs = $(call need_pc,$(1))$(shell $(PKG_CONFIG) --libs $(1))

our_CFLAGS := -std=c11 -D_GNU_SOURCE -DPTCP_VERSION='"$(VERSION)"' -Iinclude -Isrc -Itests -I$(BUILD)/src -pthread \
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -fno-common \
	-fPIC -fno-semantic-interposition $(if $(POSIX),-DPTCP_POSIX) $(if $(WERROR),-Werror) $(filter-out missing=%,$(pc_CFLAGS)) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
our_LDFLAGS := -pthread $(if $(SAN),-fsanitize=$(SAN))
link    = $(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^)

# $(call stamp,FILE,TEXT): FILE, which is written only when TEXT changes. Objects depend on a stamp of their flags, and
# archives on a stamp of their list, so that an edit of a Makefile rebuilds only files that the edit concerns. The texts do
# not name the folder of the build, so that a copy of it elsewhere (tests/e2e/test_rpm) is complete, too.
differ = $(subst x$(1)x,,x$(2)x)$(subst x$(2)x,,x$(1)x)
stamp  = $(if $(call differ,$(strip $(file <$(1))),$(strip $(2))),$(if \
	$(shell mkdir -p $(dir $(1)) 2>/dev/null && test -w $(dir $(1)) && echo yes),$(file >$(1),$(strip $(2)))))$(1)

objs_of    = $(patsubst %.c,$(BUILD)/%.o,$(1))
layer_objs = $(call objs_of,$(filter-out $(static_SRC) $(absent_SRC) $(other_SRC),$(wildcard $(foreach l,$(1),src/$(l)/*.c src/$(l)/*/*.c))))
cli_OBJS  := $(call layer_objs,queue input cli)
libptcp_OBJS := $(call layer_objs,$(libptcp_LAYERS))
plan_OBJS := $(call layer_objs,$(plan_LAYERS))
absent_OBJS := $(if $(WITHOUT_PLAN),$(call objs_of,$(absent_SRC)))
linked_plan_OBJS := $(filter-out $(if $(WITHOUT_PLAN),%/glpk_load.o),$(plan_OBJS)) $(absent_OBJS)

all: $(BUILD)/ptcp shared completions

$(BUILD)/libptcp.a: $(libptcp_OBJS)
$(BUILD)/libptcp-plan.a: $(plan_OBJS)
# Internal layers of libptcp that are also linked into libptcp-plan.
$(BUILD)/libinside.a: $(call layer_objs,core model)
$(BUILD)/libptcp.a $(BUILD)/libptcp-plan.a $(BUILD)/libinside.a: $(call stamp,$(BUILD)/sources,$(subst $(BUILD)/,,$(libptcp_OBJS) $(plan_OBJS)))
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

# Shared libraries export only the symbols in their maps, so that programs replace no function within: the compiler assumes
# the same of all sources (-fno-semantic-interposition), but leaves symbols visible to the library of the unit tests
# (tests/tests.mk). libptcp-plan contains its own copy of core and model. Lookups of names may outlive a handle, so the code
# stays loaded (nodelete).
LIB_SO  := libptcp.so libptcp-plan.so
.PHONY: shared
shared: $(LIB_SO:%=$(BUILD)/%)

# A library of clang leaves the functions of a sanitizer to the program.
shared_link = $(Q)$(CC) -shared -Wl,-soname,$(@F).$(SOVERSION) -Wl,-z,nodelete -Wl,--version-script=$(filter %.map,$^) \
	$(if $(SAN),,-Wl,--no-undefined) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@.$(SOVERSION) $(filter %.o,$^) \
	$(filter %.so %.a,$^) $(1) && ln -sf $(@F).$(SOVERSION) $@

$(BUILD)/libptcp.so: src/api/libptcp.map $(libptcp_OBJS)
	$(call shared_link,$(call pc_libs,$(LIB_PC)) -lm)

$(BUILD)/libptcp-plan.so: src/plan/libptcp-plan.map $(linked_plan_OBJS) $(BUILD)/libptcp.so \
		$(BUILD)/libinside.a
	$(call shared_link,$(call pc_libs,$(PLAN_PC)) -lm)

# Static libraries to install: one object each, with only the public symbols global.
static_link = $(Q)mkdir -p $(@D) && $(LD) -r -o $(@:.a=.o) $(filter %.o,$^) $(filter %.a,$^) && \
	$(OBJCOPY) -w $(foreach s,$(1),--keep-global-symbol='$(s)') $(@:.a=.o) && \
	rm -f $@ && $(AR) rcs $@ $(@:.a=.o)

$(BUILD)/installed/libptcp.a: $(libptcp_OBJS)
	$(call static_link,ptcp_*)

$(BUILD)/installed/libptcp-plan.a: $(linked_plan_OBJS) $(BUILD)/libinside.a
	$(call static_link,ptcp_collect_* ptcp_links_* ptcp_overlay_* ptcp_paths_* ptcp_plan_*)

# Objects replace those of archives.
$(BUILD)/ptcp: $(cli_OBJS) $(absent_OBJS) $(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	$(Q)$(link) $(call pc_libs,$(LIB_PC) $(PLAN_PC) $(TOOL_PC)) -lm

# Completions: the files of contrib/completions with the table of commands and options in the place of @TABLE@; fish quotes
# the table.
COMPLETIONS := $(patsubst %,$(BUILD)/completions/%,ptcp.bash _ptcp ptcp.fish)
.PHONY: completions
completions: $(COMPLETIONS)

$(BUILD)/completions/print-table: $(BUILD)/contrib/completions/table.o $(filter-out %/main.o,$(cli_OBJS)) \
		$(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	@mkdir -p $(@D)
	$(Q)$(link) $(call pc_libs,$(LIB_PC) $(PLAN_PC) $(TOOL_PC)) -lm

$(BUILD)/completions/table: $(BUILD)/completions/print-table
	$(Q)$< >$@.new && mv $@.new $@

$(COMPLETIONS): $(BUILD)/completions/%: contrib/completions/% $(BUILD)/completions/table
	$(Q)$(if $(filter %.fish,$@),sed "s/['\\\\]/\\\\&/g",cat) $(BUILD)/completions/table >$@.table
	$(Q)sed -e '/^@TABLE@$$/{r $@.table' -e 'd;}' $< >$@.new && mv $@.new $@

# make static: build one executable without shared libraries, BUILD/static/ptcp, for any Linux of this architecture
# pkg-config names neither the static libraries of GLPK's dependencies nor Debian's name of libuv's. The linker warns
# about each lookup of names: src/net/name_services.c is the answer, so its output is shown after a failure only.
STATIC_LIBS ?= -l:libuv_a.a -lssl -lcrypto -lxxhash -lzstd -lyaml -ljansson $(if \
	$(WITHOUT_PLAN),,-lglpk -lamd -lcolamd -lsuitesparseconfig -lltdl -lz -lgmp)
STATIC := $(BUILD)/static/ptcp$(if $(WITHOUT_PLAN),-without-plan)
.PHONY: static
static: $(STATIC)

$(STATIC): $(cli_OBJS) $(call objs_of,$(filter-out $(if $(WITHOUT_PLAN),%/glpk_linked.c),$(static_SRC))) $(absent_OBJS) \
		$(BUILD)/libptcp-plan.a $(BUILD)/libptcp.a
	@mkdir -p $(@D)
	$(Q)$(link) -static-pie -s $(STATIC_LIBS) -lm >$@.log 2>&1 || { cat $@.log >&2; exit 1; }

include tests/tests.mk tests/lab/lab.mk tests/bench/bench.mk

# tests/tests.mk names plain_OBJS, the test programs that are not optimized.
flags_stamp := $(call stamp,$(BUILD)/flags,$(subst $(BUILD)/,,$(CC) $(our_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(our_LDFLAGS) $(LDFLAGS) $(TEST_CFLAGS)))
$(BUILD)/%.o: %.c $(flags_stamp)
	$(call need_pc,$(LIB_PC) $(PLAN_PC) $(TOOL_PC) $(if $(filter $@,$(test_OBJS)),$(TEST_PC)))
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC  $<")
	$(Q)$(CC) $(our_CFLAGS) $(CPPFLAGS) $(if $(filter $@,$(plain_OBJS)),$(TEST_CFLAGS),$(CFLAGS)) -MMD -MP -c -o $@ $<

# A shell script as a string of C: one line without comments (src/client/ssh_install.sh says what that needs of the script).
# A backslash before each question mark, as ??- would be a trigraph.
script_h := $(BUILD)/src/client/ssh_install_script.h
$(script_h): src/client/ssh_install.sh
	@mkdir -p $(@D)
	$(Q)sed -e '/^[[:space:]]*#/d' -e '/^$$/d' -e 's/^[[:space:]]*//' -e 's/[\\"?]/\\&/g' -e 's/.*/"& "/' $< >$@.new && \
		mv $@.new $@
$(BUILD)/src/client/ssh_install.o: $(script_h)

-include $(shell find $(BUILD) -type f -name '*.d' 2>/dev/null)

# -------------------------------------------------- Demonstrating, installing

# make demo: send a tree over loopback and back, and compare
demo: setup
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)BUILD='$(BUILD)' contrib/demo

# make install: install tool, manual, completions, units, libraries and headers below PREFIX, and prepare the service
# Packages set DESTDIR, a prefix of all paths, and prepare the host themselves.
MAN_PAGES := $(wildcard man/*.[1-8])
HEADERS   := $(sort $(wildcard include/ptcp/*.h))
LIB_A     := $(patsubst %,$(BUILD)/installed/%.a,libptcp libptcp-plan)
PC_FILES  := libptcp.pc libptcp-plan.pc
# Files from contrib, with their destinations: service units contain the path of the tool, and completions its options.
EXTRAS    := systemd/ptcp.service.in:$(UNITDIR)/ptcp.service systemd/ptcp.socket:$(UNITDIR)/ptcp.socket \
	systemd/user/ptcp.service.in:$(PREFIX)/lib/systemd/user/ptcp.service \
	systemd/user/ptcp-jobs.service.in:$(PREFIX)/lib/systemd/user/ptcp-jobs.service \
	systemd/ptcp.sysusers:$(PREFIX)/lib/sysusers.d/ptcp.conf \
	systemd/ptcp.tmpfiles:$(PREFIX)/lib/tmpfiles.d/ptcp.conf \
	completions/ptcp.bash:$(BASHDIR)/ptcp completions/_ptcp:$(ZSHDIR)/_ptcp \
	completions/ptcp.fish:$(FISHDIR)/ptcp.fish
extra_from = $(if $(filter completions/%,$(1)),$(BUILD),contrib)/$(firstword $(subst :, ,$(1)))
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
.PHONY: dist dist-sources dist-static deb rpm wheel oci release
dist: dist-sources dist-static

dist-sources:
	$(Q)contrib/dist $(DIST) $(BUILD)

dist-static: $(STATIC) completions
	$(Q)contrib/dist-static $(DIST)-linux-$(shell uname -m) $(BUILD) $(STATIC) $(BUILD)/completions

# make deb: build Debian packages in build/deb
deb: dist-sources
	$(Q)contrib/deb $(DIST) $(BUILD)

# make rpm: build RPM packages in build/rpm; ARGS=--nodeps: without a database of the required packages
rpm: dist-sources
	$(Q)contrib/rpm/build $(DIST) $(BUILD) $(ARGS)

# make wheel: build a Python wheel with libraries and executable, and an sdist, in build/wheel; PYTHON=python3 with auditwheel
PYTHON ?= python3
wheel: all
	$(Q)contrib/wheel $(BUILD) $(PYTHON)

# make oci: build a container image of the server, with podman, buildah or docker
oci:
	$(Q)contrib/oci/build ptcp:$(VERSION)

# make release: compare version numbers, run tests, build packages, and print the checklist of a release
release:
	$(Q)contrib/release $(VERSION) $(BUILD)

# ------------------------------------------------------------------------

# make size: print lines of sources and words of documents by folder, beside those of the last tag (or REV=revision)
.PHONY: size
size:
	$(Q)contrib/size $(REV)

# make man/ptcp-messages.7: generate the page of messages from the sources and man/messages.txt
man/ptcp-messages.7: FORCE
	$(Q)contrib/messages page >$@.new && mv $@.new $@

setup:
	$(Q)contrib/setup

clean:
	rm -rf build build-*

help:
	@sed -n 's/^# \(make [a-z]*.*\)/\1/p' Makefile tests/*.mk tests/*/*.mk
