package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/carrelfs/carrel/execd/tools"
)

// Config is what a server offers.
type Config struct {
	Workspace string // its name, for people and the model
	Version   string // of the program
	// Set gives the tools for one call. They may be others than for the call before, when the workspace had to be opened
	// again.
	Set func(ctx context.Context) (*tools.Set, error)
	// ReadOnly, Exec and History say which tools there are: those that change something unless ReadOnly, exec when Exec,
	// diff and snapshot when History.
	ReadOnly, Exec, History bool
	Backends                string // a list of what can run something
}

// NewServer returns a server for any number of sessions.
func NewServer(c Config) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "carrel", Title: "Carrel", Version: c.Version},
		&sdk.ServerOptions{Instructions: c.instructions(), Capabilities: &sdk.ServerCapabilities{}})
	c.addReaders(s)
	if c.History {
		c.addDiff(s)
	}
	if c.ReadOnly {
		return s
	}
	c.addWriters(s)
	if c.History {
		add(s, c, tool{"snapshot", "Keep the workspace as it is now under a name, which diff can compare with.", safe},
			(*tools.Set).Snapshot)
	}
	if c.Exec {
		add(s, c, tool{"exec", "Run a command line or a module on the workspace and wait for its end. Output has its beginning and " +
			"its end; an exec that goes on longer, or wrote more, is looked at again by its id. Backends: " + c.Backends + ".",
			destructive}, (*tools.Set).Exec)
	}
	return s
}

func (c Config) instructions() string {
	text := "These tools work on the workspace " + c.Workspace + ", a directory tree of its own. Paths start at its root, /. " +
		"Results are bounded: what begins with next_ says how to go on."
	if c.ReadOnly {
		text += " Nothing can be changed."
	}
	return text
}

func (c Config) addReaders(s *sdk.Server) {
	addText(s, c, tool{"read", "Read a text file by lines, any file by bytes, or an image.", readOnly}, (*tools.Set).Read, readContent)
	add(s, c, tool{"ls", "List a directory.", readOnly}, (*tools.Set).List)
	add(s, c, tool{"find", "Find files and directories by their names.", readOnly}, (*tools.Set).Find)
	add(s, c, tool{"grep", "Find lines of files by a regular expression.", readOnly}, (*tools.Set).Grep)
}

func (c Config) addDiff(s *sdk.Server) {
	addText(s, c, tool{"diff", "Show what has changed since this session began, or between two states of the workspace.", readOnly},
		(*tools.Set).Diff, diffContent)
}

func (c Config) addWriters(s *sdk.Server) {
	add(s, c, tool{"write", "Write a whole file, also a new one.", destructive}, (*tools.Set).Write)
	addText(s, c, tool{"edit", "Change places of a text file. Each old text must be in exactly one place of the file as it is; " +
		"all changes are made, or none. Gives the difference.", destructive}, (*tools.Set).Edit, editContent)
	add(s, c, tool{"delete", "Delete a file or a directory.", destructive}, (*tools.Set).Delete)
}

// tool is what a model is told of one.
type tool struct {
	name, description string
	effect            effect
}

// effect is what a client is told, which may ask a person first.
type effect int

const (
	readOnly effect = iota
	safe            // nothing is lost by it
	destructive
)

func (t tool) definition() *sdk.Tool {
	lost, open := t.effect == destructive, false
	return &sdk.Tool{Name: t.name, Description: t.description, Annotations: &sdk.ToolAnnotations{
		ReadOnlyHint: t.effect == readOnly, DestructiveHint: &lost, OpenWorldHint: &open,
	}}
}

// add offers a tool whose result is JSON.
func add[In, Out any](s *sdk.Server, c Config, t tool, call func(*tools.Set, context.Context, In) (*Out, error)) {
	sdk.AddTool(s, t.definition(), func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, *Out, error) {
		set, err := c.Set(ctx)
		if err != nil {
			return nil, nil, err
		}
		out, err := call(set, ctx, in)
		return nil, out, err
	})
}

// addText offers a tool whose result is text, or an image. It is not given as JSON too: a model would read it twice.
func addText[In, Out any](
	s *sdk.Server, c Config, t tool, call func(*tools.Set, context.Context, In) (*Out, error), show func(*Out) []sdk.Content,
) {
	sdk.AddTool(s, t.definition(), func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		set, err := c.Set(ctx)
		if err != nil {
			return nil, nil, err
		}
		out, err := call(set, ctx, in)
		if err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{Content: show(out)}, nil, nil
	})
}
