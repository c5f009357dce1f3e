package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// A session is created, told something, followed to the end of that run, and what it asks
// on the way is approved.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	c, err := client.New("http://127.0.0.1:7717", client.Options{Token: "mht_..."})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	created, _, err := c.CreateSession(ctx, client.NewSession{Title: "A first try"})
	if err != nil {
		fmt.Println(err)
		return
	}
	sent, err := c.Message(ctx, client.Message{SessionID: created.SessionID, Content: "Mend the report"})
	if err != nil {
		fmt.Println(err)
		return
	}
	f := c.Follow(created.SessionID, client.FollowOptions{})
	for u, err := range f.Updates(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch fact := u.Record.(type) {
		case *narad.MessageTextDelta:
			fmt.Print(fact.Delta)
		case *narad.InterruptRequested:
			// Somebody else may be quicker: that is no failure.
			answer, err := c.ResolveInterrupt(ctx, client.ResolveInterrupt{InterruptID: fact.InterruptID, Decision: "approve"})
			if err != nil && answer.Status != client.Conflict {
				fmt.Println(err)
				return
			}
		case *narad.RunFinished:
			if fact.RunID == sent.RunID {
				return
			}
		}
	}
}

// What to do about an error is in the error.
func ExampleError() {
	follow := func(c *client.Client, at client.Position) error {
		f := c.Follow(at.SessionID, client.FollowOptions{After: at.Sequence, Epoch: at.Epoch})
		for u, err := range f.Updates(context.Background()) {
			if err != nil {
				return err
			}
			fmt.Printf("%s\n", u.Raw)
		}
		return nil
	}
	c, err := client.New("http://127.0.0.1:7717", client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	at := client.Position{SessionID: "s1", Sequence: 41, Epoch: "as Follower.Position told it"}
	var e *client.Error
	if err := follow(c, at); errors.As(err, &e) {
		switch e.Action {
		case client.Retry:
			<-time.After(max(e.RetryAfter, time.Second)) // and follow again from the same place
		case client.Resync:
			at.Sequence, at.Epoch = 0, "" // and follow anew
		case client.GiveUp:
			fmt.Println(e.Code, e.Status, e.Detail)
		}
	}
}

// The inbox holds what waits in all sessions.
func ExampleClient_Interrupts() {
	c, err := client.New("unix:///run/user/1000/mahati.sock", client.Options{Token: "mht_..."})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, err := range c.Interrupts(context.Background(), client.InboxQuery{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(i.InterruptID, i.SessionTitle, i.Title, i.Actions)
	}
}
