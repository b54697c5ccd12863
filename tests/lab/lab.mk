# The network laboratory: see tests/lab/README.md.

lab_PARTS := rng red link net vclock params topo veth ns packetio ctl emu emu_ctl \
	state keeper
lab_CMDS  := lab cmd_up cmd_use cmd_down selftest
lab_dir   := $(BUILD)/tests/lab
lab_BINS  := $(lab_dir)/lab $(lab_dir)/flow $(lab_dir)/udp $(lab_dir)/draw

# Laboratory tests of `make check`: unit tests, and a script with its programs.
test_BINS    += $(patsubst %,$(lab_dir)/test_%,link net topo random_path)
test_SCRIPTS += $(patsubst %,tests/lab/test_%.sh,lab draw advise striping links shared watch overlay collect weather)
test_PROGRAMS += $(lab_BINS)

lab_unit_OBJS := $(patsubst %,$(lab_dir)/%.o,rng red link net vclock params topo random_path)
$(lab_dir)/test_%: $(lab_dir)/test_%.o $(lab_unit_OBJS) $(BUILD)/libptcp.a
	$(Q)$(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(call pc_libs,yaml-0.1 $(TEST_PC)) -lm

.PHONY: lab-programs
lab-programs: $(lab_BINS)

$(lab_dir)/lab: $(patsubst %,$(lab_dir)/%.o,$(lab_CMDS) $(lab_PARTS)) $(BUILD)/libptcp.a
	$(Q)$(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(call pc_libs,yaml-0.1) -lm

$(lab_dir)/flow: $(patsubst %,$(lab_dir)/%.o,flow flow_source rng) $(BUILD)/libptcp.a
	$(Q)$(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm

$(lab_dir)/draw: $(patsubst %,$(lab_dir)/%.o,draw random_path rng) $(BUILD)/libptcp.a
	$(Q)$(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm

$(lab_dir)/udp: $(lab_dir)/udp.o $(BUILD)/libptcp.a
	$(Q)$(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^

$(lab_dir)/iobench: $(patsubst %,$(lab_dir)/%.o,iobench ns veth) $(BUILD)/libptcp.a
	$(Q)$(CC) $(our_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^

# make lab-selftest: measure the accuracy of the laboratory (two minutes, root)
# make lab-curves: measure goodput by number of streams (hours; settings: see tests/lab/curves)
# make lab-iobench: compare two methods of forwarding packets
.PHONY: lab-selftest lab-curves lab-iobench
lab-selftest: lab-programs
	$(Q)$(lab_dir)/lab selftest

lab-curves: lab-programs
	$(Q)BUILD=$(BUILD) tests/lab/curves

lab-iobench: lab-programs $(lab_dir)/iobench
	$(Q)for n in 1 4; do for way in tun packet; do $(lab_dir)/iobench $$way $$n 4 || exit 1; done; done
