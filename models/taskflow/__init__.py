"""Static schedules of tile tasks over matrix and vector queues that wait for each other's events.

`schedule` is the data, `reading` and `writing` the file format, `builder` the same from Python,
`validation` what a schedule must be before anybody checks it, `moe` and `scheduling` the generator.
"""
