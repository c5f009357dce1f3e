// Package client is the Go SDK for a Narad host: commands, sessions, the approval
// inbox, history, streams, and following a session over every break of the network.
//
// # What it promises
//
// [Client.Follow] shows each fact of a session once, in order, from the place where
// the caller stands until the caller leaves: it attaches, subscribes beyond the
// boundary, reads what lies before it from history, merges both by sequence, fills
// holes from history, watches the host's heartbeats, and comes back after a break.
// Commands carry an id of their own, so a call that is repeated because its answer
// was lost has one effect (R21). Each [Error] says what to do: retry, resync, or give
// up. No error and no printed value of this package shows a token, and of a fault of
// the network it tells only what this package itself words ([Public]).
//
//	c, err := client.New("http://127.0.0.1:7717", client.Options{Token: client.Token(token)})
//	f := c.Follow("session-1", client.FollowOptions{})
//	for u, err := range f.Updates(ctx) {
//		if err != nil {
//			return err
//		}
//		if asked, ok := u.Record.(*narad.InterruptRequested); ok {
//			_, err = c.ResolveInterrupt(ctx, client.ResolveInterrupt{InterruptID: asked.InterruptID, Decision: "approve"})
//		}
//		if u.Phase == client.Live { // caught up: f.Messages() is the transcript
//		}
//	}
//
// Whatever fails is an [*Error], found with errors.As, and its Action is what to do:
//
//   - [Retry]: the same call may succeed later, after RetryAfter. The client has tried
//     [Options].Attempts times already, and a follower comes back by itself for ever, or
//     [FollowOptions].MaxAttempts times, so this is seen only when patience is over.
//   - [Resync]: what the caller holds of the session does not fit this host's store any
//     more. Drop it and follow from the beginning, without After, State or Epoch.
//   - [GiveUp]: the same call fails again. Code and Status say why: a token that is not
//     known (401), a role that is missing (403), nothing of that name (404), gone for good
//     (410), a conflict (409), a mistake of the caller's (400, 422).
//
// With [FollowOptions].Graph a follower has the graphs of runs too, and asks for a snapshot
// where one was lost. [Client.FollowWorkspace] follows what happens to the sessions of a
// workspace. Hydrate records and watch events never move a follower's place.
//
// To come back later, keep [Follower.Position] and give it to the next follower as After
// and Epoch.
//
// # Invariants
//
// A follower's state is what session.State.Apply makes of the facts from the first
// on, so two followers that stand at the same sequence have the same state, wherever
// each began. Nothing is guessed: what cannot be explained by history ends following
// with an error that asks for a resync (a bounded number of later records wait
// meanwhile), and so does a host whose store is another one than before. While it
// reads history a follower does not run ahead on the stream: the host, whose reader is
// a cursor, keeps what was not taken. Whatever comes from a host is bounded.
//
// # Concurrency
//
// A Client may be used by many goroutines. The loop over [Follower.Updates] runs in
// the caller's goroutine, one at a time; leaving it ends the connection and the one
// goroutine behind it before the loop statement is over. The loop body may take its
// time. All other methods of a Follower may be called by anybody at any time, the
// loop body included, where they tell the state right after the update in hand. A
// [Stream] belongs to one goroutine, but Close may be called from another.
//
// # What it is not
//
// It decides nothing and never takes silence for an outcome: the host decides, the
// client mirrors. It logs nothing, and keeps nothing on disk but the [Ledger] of an
// executor. It executes no tool of its own: [Client.Execute] runs the functions given.
// It follows redirects nowhere, for they would carry the token along.
package client
