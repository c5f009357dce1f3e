// Package feed tells readers that the journal has grown, and gives them what
// it grew by.
//
// # What it promises
//
// A subscription is a cursor and a one-slot wake-up, never a queue. Each look
// ([Subscription.Poll], [Frames.Poll]) gives what stands behind the cursor, in
// order, and moves the cursor over it; a reader that found nothing waits for
// its slot. Backfill, live and catching up are that one loop, so that nothing
// is lost or given twice by construction, a slow reader costs a few bytes, and
// no reader can hold up an append.
//
// # Invariants
//
//   - The slot is registered before the first look, and it is filled after the
//     durable mark has moved: what a look does not see fills the slot later.
//   - Nothing is given that is not durable: all of it comes out of the journal.
//   - The tail rings (the last facts of what somebody follows, as ready frames
//     where a [Framer] asks for them) are a cache. A ring answers for positions
//     that it covers and for nothing else; one that is dropped at any moment
//     costs a read of the journal and no fact.
//   - Many readers of one thing are not woken for each fact: after a wake-up they
//     rest until most of them have looked, and a while longer, no more than a tenth
//     of a second in all. What gathers meanwhile they find as one piece. Few readers
//     are woken at once.
//   - What it holds is bounded: a ring by facts and bytes, all rings together by
//     bytes, a look by a page. What happens to a session that nobody follows
//     costs nothing, unless somebody follows the whole host.
//
// # Concurrency
//
// All methods of [Feed] and [Framer] may be called by any number of goroutines.
// A subscription is looked at by one goroutine at a time; its Close, Lag,
// Position and Wake may be called by any. The feed has one goroutine, the
// waker, which New starts and [Feed.Close] joins. The journal's committer only
// pokes it and never waits for it.
//
// # What it is not
//
// It does not authorise, filter, time out or write: a binding does, with what
// [Subscription.Lag] tells it. It does not say that a cursor is above the head;
// such a reader waits until the head has passed it.
package feed
