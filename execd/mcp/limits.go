package mcp

import "time"

const (
	// maxBody bounds a request by HTTP: the largest file that one write makes, in base64, and what is around it.
	maxBody = 12 << 20
	// idleSession is how long a session by HTTP is kept that nobody uses. An agent begins another.
	idleSession = time.Hour
)
