// Package mcp offers the tools of execd/tools by the Model Context Protocol (https://modelcontextprotocol.io), to an agent
// at the other end of a pipe or, by streamable HTTP, of a connection.
//
// What a tool gives as text for reading (read, edit, diff) is text; all else is JSON. An error of a tool is a result that
// says so, which the model sees, not an error of the protocol.
//
// Over HTTP every request needs the token that the server was given; there is no other right than to use all the tools that
// the set offers. A set that may only read is not asked to change anything: tools that would are not offered.
//
// Nothing is kept here: a session that breaks off is begun again by the agent, and finds the workspace as it left it.
package mcp
