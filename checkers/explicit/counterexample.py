"""stub"""
def build_trace(question, finding, exploration, choices, fewest):
    return None
