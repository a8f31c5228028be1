package ibnet

import "fmt"

// maxLanes is the widest link that there is.
const maxLanes = 12

// laneMbps returns what a lane carries by the name of its speed, as products are sold: 100 Gb/s
// for four lanes of EDR, 400 for four of NDR. It is 0 for a name that is not known.
func laneMbps(speed string) int64 {
	switch speed {
	case "SDR":
		return 2_500
	case "DDR":
		return 5_000
	case "QDR", "FDR10":
		return 10_000
	case "FDR":
		return 14_000
	case "EDR":
		return 25_000
	case "HDR":
		return 50_000
	case "NDR":
		return 100_000
	case "XDR":
		return 200_000
	}
	return 0
}

// rate reads a width and speed such as 4xNDR.
func rate(lanes int, speed string) (int64, error) {
	switch {
	case lanes < 1 || lanes > maxLanes:
		return 0, fmt.Errorf("%d lanes; expected 1 to %d, as in 4xNDR", lanes, maxLanes)
	case laneMbps(speed) == 0:
		return 0, fmt.Errorf("speed %q; expected SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR, as in 4xNDR", speed)
	}
	return int64(lanes) * laneMbps(speed), nil
}
