// Package datetime writes times as strftime(3) and GNU date do, reads them as date -d does, and knows time zones without
// asking the host.
package datetime
