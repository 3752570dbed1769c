"""Live sound: microphone and loudspeaker, sound files, front ends."""
