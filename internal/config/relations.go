package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// paths makes every path absolute.
func (l *loader) paths() {
	c := &l.config
	c.TLS.Cert, c.TLS.Key = l.absolute(c.TLS.Cert), l.absolute(c.TLS.Key)
	roots := c.Workspaces.Roots
	c.Workspaces.Roots = []string{}
	for _, root := range roots {
		expanded := l.expand(root)
		if !filepath.IsAbs(expanded) {
			// Without HOME the default has no meaning, and no session a directory.
			if l.sources["workspaces.roots"] != "default" {
				l.fail(l.sources["workspaces.roots"], "workspaces.roots", fmt.Sprintf("%q", root), "HOME is not set")
			}
			continue
		}
		c.Workspaces.Roots = append(c.Workspaces.Roots, filepath.Clean(expanded))
	}
}

// absolute takes a path relative to the home. An empty one stays empty.
func (l *loader) absolute(path string) string {
	if path == "" {
		return ""
	}
	path = l.expand(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(l.config.Home, path)
}

// expand puts the user's home directory in place of "~".
func (l *loader) expand(path string) string {
	user := l.env("HOME")
	if !filepath.IsAbs(user) {
		return path
	}
	if path == "~" {
		return user
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(user, rest)
	}
	return path
}

// relations checks what one value asks of another. It blames the key that a
// person would have to change.
func (l *loader) relations() {
	c := &l.config
	blame := func(key, value, rule string) { l.fail(l.sources[key], key, value, rule) }
	if c.Executors.Heartbeat > c.Executors.Lease/2 {
		blame("executors.heartbeat", c.Executors.Heartbeat.String(), "must be at most half of executors.lease, or leases end between two heartbeats")
	}
	if c.TLS.Cert != "" && c.TLS.Key == "" {
		blame("tls.cert", fmt.Sprintf("%q", c.TLS.Cert), "needs tls.key")
	}
	if c.TLS.Key != "" && c.TLS.Cert == "" {
		blame("tls.key", fmt.Sprintf("%q", c.TLS.Key), "needs tls.cert")
	}
	if !Loopback(c.Listen) && c.TLS.Cert == "" && !c.BehindProxy {
		blame("listen", fmt.Sprintf("%q", c.Listen),
			"beyond loopback the listener needs tls.cert and tls.key, or behind_proxy = true")
	}
	if c.Agents.Default != "" {
		// An agent that a flag defines is not known yet; its flag names it default.
		if _, ok := c.Agents.Named[c.Agents.Default]; !ok {
			blame("agents.default", fmt.Sprintf("%q", c.Agents.Default), "there is no agent of this name")
		}
	}
}
