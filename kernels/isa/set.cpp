namespace pulse::PULSE_NS {}
