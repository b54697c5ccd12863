/* Intrusive doubly linked list; an empty head points to itself. */
#ifndef CORE_LIST_H
#define CORE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

/* The struct of which *node is the member. */
#define CONTAINER_OF(node, type, member) \
	((type *)(void *)((char *)(node) - offsetof(type, member)))

/* A loop over the list: `var` is each struct of that type in turn. The body may remove `var`, and no other node. */
#define LIST_EACH(head, var, type, member) \
	for (struct list *at_ = (head)->next, *next_ = at_->next; \
	    at_ != (head) && ((var) = CONTAINER_OF(at_, type, member), true); at_ = next_, next_ = at_->next)

static inline void list_init(struct list *l) { l->next = l->prev = l; }
static inline bool list_empty(const struct list *l) { return l->next == l; }

static inline void list_append(struct list *head, struct list *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

/* Leaves n as an empty list, so that removing n again is harmless. */
static inline void list_remove(struct list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

#endif
