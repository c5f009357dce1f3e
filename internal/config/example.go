package config

import "strings"

const exampleHead = `# The configuration of Mahati, <home>/config.toml. Every line that sets something
# is shown with its default; take away the # to change it. Each setting but agents,
# policy, narya.styles and harness.classify can also be given in the environment, in capitals and with _ for the
# dot: MAHATI_STREAMS_HEARTBEAT=10s, lists separated by commas. Flags win over the
# environment, the environment over this file. A key that is not known is an error.
`

const exampleAgents = `
# An agent that sessions can name; there may be any number. kind = "acp" is any
# program that speaks the Agent Client Protocol on stdin and stdout: command is its
# command line, or a list of its words; env names variables that are passed on to
# it besides PATH, HOME and the like; cwd is its directory, if not the session's;
# auth_method is the agent's own id of the way to sign in that is used when it asks
# for one, without it the run ends with agent_auth_required; models are those on which it
# can run, the default first, and variants the presets of each of them: without any it is
# asked which there are.
#[agents.opencode]
#kind = "acp"
#command = ["npx", "opencode-ai", "acp"]
#env = ["OPENCODE_API_KEY"]
#cwd = ""
#auth_method = ""
#models = ["anthropic/claude-sonnet-4-5", "openai/gpt-5"]
#variants = ["low", "high"]

# A server of the Model Context Protocol that this agent is told of, and connects to
# by itself; there may be any number. Either a command that the agent starts, with env
# the names of the variables that the server gets, or a url (streamable HTTP, if the
# agent can), with header_env the headers and the names of the variables that hold
# their values. Secrets stand in the host's environment, never in this file.
#[agents.opencode.mcp.files]
#command = ["npx", "@modelcontextprotocol/server-filesystem", "."]
#env = ["FILES_TOKEN"]

#[agents.opencode.mcp.issues]
#url = "https://mcp.example/mcp"
#header_env = { Authorization = "ISSUES_AUTHORIZATION" }

# Which executor runs a tool of this agent on its own machine (mahati executor): by the
# tool's name, or its beginning and *. "*" alone is the executor of the agent's runs, if
# the session names no other. The files and terminals of an acp agent are the tools
# fs/read_text_file, fs/write_text_file and terminal/*: it is offered those that stand
# here.
#[agents.opencode.executors]
#"fs/*" = "laptop"
#"terminal/*" = "laptop"

# kind = "script" follows a file of steps, without a model.
#[agents.rehearsal]
#kind = "script"
#file = "rehearsal.script"
`

const exampleStyles = `
# Styles in which a session can ask for its answers: by name, what its agent is told.
#[narya.styles]
#brief = "Answer in at most three sentences."
`

const examplePolicy = `
# What happens when an agent asks for a permission: the first rule that matches
# allows it, asks a person, or denies it; without one a person is asked. A rule
# matches when each condition that it has does. kind is one or a list of read, edit,
# delete, move, search, execute, think, fetch and other; tool and path are patterns
# of *, ?, [...], and ** for any number of directories. The name is recorded with
# each decision, rule-1 and so on if it has none.
#[[policy]]
#name = "reading is fine"
#action = "allow"
#kind = ["read", "search"]

# Some things want more than one pair of eyes: quorum is how many tokens must approve
# what is asked. Whoever denies decides alone.
#[[policy]]
#name = "deleting takes two"
#action = "ask"
#kind = "delete"
#quorum = 2

#[[policy]]
#name = "keys are off limits"
#action = "deny"
#kind = "edit"
#tool = "*"
#path = "**/.ssh/**"
`

const exampleClassify = `
# Who sees what of a run's log (mahati harness, docs/harness.md). Lifecycle, usage and
# checkpoints are public; what has content is private, for tokens with the role observe
# alone, unless the first rule that matches says public, private, or secret, which is
# redacted for everybody. It is about these logs: who observes the session over Narad, or
# exports it, sees its facts whole. A rule matches when each condition that it has does:
# tool and agent are patterns, as in [[policy]], for the name of the tool that a record
# is about, if it is about one ("**" is any), and of the session's agent; type is a type
# of record. What held at the start of a run holds for all of its log.
#[[harness.classify]]
#type = "message.delta"
#agent = "echo"
#class = "public"

#[[harness.classify]]
#tool = "vault_*"
#class = "secret"
`

// Example is the documented configuration file, every setting at its default and
// commented out.
func Example() string {
	var config Config
	var out strings.Builder
	out.WriteString(exampleHead)
	section := ""
	for _, s := range settingsOf(&config) {
		s.value.reset()
		name := s.key
		if table, key, ok := strings.Cut(s.key, "."); ok {
			name = key
			if table != section {
				out.WriteString(endOfSection(section))
				out.WriteString("\n[" + table + "]\n")
				section = table
			}
		}
		out.WriteString("\n")
		for line := range strings.SplitSeq(s.doc, "\n") {
			out.WriteString("# " + line + "\n")
		}
		out.WriteString("#" + name + " = " + s.value.literal() + "\n")
	}
	out.WriteString(endOfSection(section))
	out.WriteString(examplePolicy)
	out.WriteString(exampleClassify)
	return out.String()
}

// endOfSection is what follows the settings of a section.
func endOfSection(section string) string {
	switch section {
	case "agents":
		return exampleAgents
	case "narya":
		return exampleStyles
	}
	return ""
}
