// Package table writes tables of words and figures as plain text: the first column to the left,
// the others to the right.
package table

import (
	"io"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
)

// Write writes a table with a line between header and rows.
func Write(out io.Writer, header []string, rows ...[]string) error {
	t := table.New().Border(lipgloss.HiddenBorder()).BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).
		BorderColumn(false).BorderHeader(false).Wrap(false).Headers(header...).Rows(rows...).
		StyleFunc(func(_, column int) lipgloss.Style {
			if column == 0 {
				return lipgloss.NewStyle()
			}
			return lipgloss.NewStyle().Align(lipgloss.Right).PaddingLeft(2)
		})
	for line := range strings.Lines(t.String() + "\n") {
		// The library makes all lines equally long.
		if _, err := io.WriteString(out, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}
