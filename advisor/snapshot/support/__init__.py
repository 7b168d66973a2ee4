"""Archives of other tools: sosreport, supportconfig, VRTSexplorer and the insights client."""
