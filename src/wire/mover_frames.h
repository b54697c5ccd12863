/* The part of WIRE_FRAMES about movers (wire/mover.h). Included by frame.h, which has the limits. */
#ifndef WIRE_MOVER_FRAMES_H
#define WIRE_MOVER_FRAMES_H

#define WIRE_MOVER_FRAMES(X) \
	X(MOVER, 80, 1 + WIRE_HOST_MAX) \
	X(STREAM, 81, 104 + WIRE_HOST_MAX + WIRE_LABEL_MAX + WIRE_CONGESTION_MAX) \
	X(SOURCE, 82, 52 + WIRE_PATH_MAX) \
	X(SEND, 83, 5 + 64 * 24) \
	X(FORGET, 84, 8) \
	X(CHECK, 85, 13) \
	X(STOP, 86, 5) \
	X(PACE, 87, 9 + WIRE_CONGESTION_MAX) \
	X(CONNECTED, 88, 4) \
	X(LOST, 89, 25 + WIRE_TEXT_MAX) \
	X(GONE, 90, 4) \
	X(UNREAD, 91, 9 + WIRE_TEXT_MAX) \
	X(SENT, 92, 5 + 64 * 16) \
	X(TRAFFIC, 93, 123 + WIRE_CONGESTION_MAX)

#endif
